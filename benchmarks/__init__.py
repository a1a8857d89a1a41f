"""What the front page claims about speed, measured: `python -m benchmarks`."""
