"""A course in two dozen lessons, from one derivative to a GPT; `python -m demos` lists them, README.md is the plan.

Each lesson is a script that runs alone, `python demos/01_expression.py` or `python -m demos.01_expression`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))      # lessons import `course` and `chart`, however they are started
