"""The case bank: 113 cases from public reports about libraries like this one, and where each is an assertion.

A case has a letter for its kind (G graph, N numerics, K gradcheck, A ergonomics, I NumPy, M nn, O optim, R rendering,
P performance, B robustness) and a number. Of P02 the numbers are asserted; its speed is measured in benchmarks/, since
no test here looks at a clock.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from micrograd import Tensor, Value, nn

HERE = Path(__file__).parent
CASES = {
    "G01": "engine::test_a_second_backward_over_a_kept_graph_doubles_the_leaves_exactly",
    "G02": "tensor::test_a_second_backward_says_why_and_what_to_do_and_changes_nothing",
    "G04": "engine::test_every_path_counts_once_however_long",
    "G05": "engine::test_one_node_used_twice_in_an_operation_counts_twice", "G07": "engine::test_deep_graphs_ask_for_no_stack",
    "G08": "engine::test_inputs_cannot_be_rewired_into_a_cycle", "G10": "shared::test_forgetting_zero_grad_adds_up_exactly",
    "G11": "shared::test_inner_gradients_as_each_class_keeps_them", "G13": "shared::test_requires_grad_changes_on_leaves_only",
    "G14": "autograd::test_no_grad_in_every_shape",
    "G16": "tensor::test_in_place_changes_of_detached_copies_cannot_spoil_what_backward_needs",
    "G17": "shared::test_the_weight_update_four_ways",
    "G19": "autograd::test_an_input_that_was_not_used_is_an_error_None_or_zero",
    "G21": "shared::test_the_second_derivative_of_a_line_says_that_the_first_depends_on_nothing",
    "G23": "shared::test_backward_of_what_needs_no_gradient_says_so",
    "G24": "tensor::test_gradients_never_alias_one_another_nor_what_was_given",
    "G26": "engine::test_training_is_repeatable_to_the_last_bit_in_another_process",
    "G27": "shared::test_hooks_run_in_order_on_the_whole_gradient_once",
    "G29": "shared::test_graphs_are_freed_by_reference_counting_alone",
    "G30": "tensor::test_slices_put_gradients_back_where_they_came_from",
    "N01": "tensor::test_norms_at_zero_have_gradient_zero", "N02": "tensor::test_norms_at_zero_have_gradient_zero",
    "N04": "engine::test_kinks_are_pytorchs", "N05": "engine::test_kinks_are_pytorchs",
    "N07": "engine::test_kinks_are_pytorchs", "N08": "tensor::test_ties_of_extrema_share_evenly_everywhere",
    "N10": "engine::test_powers_at_every_corner", "N11": "engine::test_powers_at_every_corner",
    "N13": "engine::test_powers_at_every_corner", "N14": "engine::test_division_by_zero_is_ieee",
    "N16": "engine::test_nothing_overflows_and_nothing_is_complex",
    "N17": "engine::test_nothing_overflows_and_nothing_is_complex",
    "N19": "engine::test_softplus_and_logsigmoid_are_exact_at_both_ends", "N20": "tensor::test_logsumexp_at_the_extremes",
    "N22": "tensor::test_softmax_subtracts_the_maximum_of_each_row", "N23": "losses::test_bce_with_logits_at_the_extremes",
    "N25": "engine::test_where_does_not_stop_what_leaks_inside_the_branch_not_taken", "N26": "tensor::test_products_with_zeros",
    "N28": "tensor::test_deviation_of_what_does_not_deviate", "N29": "tensor::test_entropy_at_zero_is_ieee",
    "N31": "tensor::test_gradients_of_a_broadcast_are_summed_back",
    "N32": "tensor::test_reductions_over_several_axes_put_the_gradient_back_where_it_belongs",
    "N36": "tensor::test_norms_at_zero_have_gradient_zero", "N37": "nn::test_layer_norm_of_a_constant_row",
    "N43": "engine::test_the_exercise_of_the_lecture", "N44": "micrograd::test_the_expression_of_the_front_page",
    "N46": "engine::test_the_neuron_of_the_lecture", "N48": "tensor::test_empty_arrays",
    "N50": "tensor::test_products_of_vectors_matrices_and_batches", "N51": "engine::test_goldstein_price_and_rosenbrock",
    "K02": "autograd::test_gradcheck_at_a_kink_warns_and_fails", "K03": "autograd::test_gradcheck_catches",
    "K05": "autograd::test_gradcheck_reports_input_index_and_both_values",
    "K06": "autograd::test_gradcheck_needs_something_to_check",
    "A01": "engine::test_builtin_sum_starts_from_zero_or_from_a_node", "A02": "engine::test_numbers_on_the_left",
    "A04": "engine::test_powers_at_every_corner", "A05": "engine::test_functions_are_methods",
    "A07": "engine::test_equality_and_hash_are_identity", "A08": "tensor::test_truth_is_that_of_the_one_entry",
    "A10": "engine::test_labels_are_names_and_nothing_else", "A11": "engine::test_repr_is_short_and_plain",
    "A13": "nn::test_json_there_and_back_bit_for_bit",
    "A14": "micrograd::test_an_operation_by_closure_mixes_with_built_in_ones",
    "A16": "micrograd::test_backward_pushed_by_hand_node_by_node", "A17": "engine::test_conversions_to_numbers",
    "A21": "engine::test_wrapping_a_value_takes_its_number",
    "A22": "engine::test_what_you_wrap_is_a_variable_and_what_you_do_not_is_a_constant",
    "I01": "engine::test_numpy_scalars_on_either_side_are_numbers",
    "I02": "engine::test_an_array_on_either_side_gives_a_tensor", "I04": "engine::test_data_is_always_a_python_float",
    "I05": "tensor::test_gradients_of_arrays_without_axes_are_arrays_without_axes",
    "I09": "tensor::test_the_array_of_the_caller_is_copied_and_never_written_to",
    "I10": "tensor::test_float32_stays_float32_forward_and_backward",
    "M01": "nn::test_layers_in_lists_tuples_and_dicts_are_found",
    "M02": "nn::test_tied_weights_are_one_parameter_under_two_names", "M04": "losses::test_targets_of_cross_entropy",
    "M05": "losses::test_huber_and_smooth_l1_differ_by_beta", "M08": "nn::test_dropout_at_the_ends_of_its_range",
    "M09": "micrograd::test_each_weight_is_drawn_on_its_own", "M16": "nn::test_the_demo_network_has_337_parameters",
    "M17": "nn::test_a_state_is_a_snapshot", "M19": "nn::test_frozen_parameters_do_not_move",
    "O01": "optim::test_adam_corrects_its_start_and_adds_eps_after_the_root", "O02": "optim::test_sgd_in_all_its_forms",
    "O04": "optim::test_wrong_arguments_are_refused", "O05": "optim::test_wrong_arguments_are_refused",
    "O08": "optim::test_clipping_nothing_gives_zero", "O09": "optim::test_clipping_a_generator_and_mixed_nodes",
    "O12": "optim::test_clipping_by_value", "O13": "optim::test_adamw_takes_the_decay_out_of_the_gradient",
    "O15": "optim::test_zero_grad_says_what_is_left", "O16": "optim::test_loaded_state_is_a_copy_and_goes_on_where_it_was",
    "O18": "autograd::test_two_half_weighted_micro_batches_are_one_batch",
    "R01": "drawing_render::test_a_missing_package_is_named_with_the_pip_command",
    **dict.fromkeys(["R02", "R04", "R05", "R07"], "drawing_render::test_labels_come_out_verbatim"),
    "R08": "drawing_render::test_newlines_become_lines_and_control_characters_visible",
    "R10": "drawing::test_deep_chain_becomes_text_without_recursion",
    "R11": "drawing::test_huge_graphs_are_refused_with_count_reason_and_cure",
    "R13": "drawing::test_same_graph_same_bytes_in_two_processes",
    "R14": "drawing_render::test_two_drawings_on_one_page_can_have_different_ids",
    "R16": "drawing::test_unset_gradient_differs_from_a_computed_zero",
    "R17": "drawing::test_equal_values_stay_two_nodes_and_a_shared_one_has_two_edges",
    "R19": "drawing::test_drawing_has_no_side_effects", "P01": "engine::test_the_walk_is_linear_in_the_size_of_the_graph",
    "P02": "training::test_the_moons_demo_is_the_same_three_ways_and_ends_right",
    "P04": "tensor::test_a_thousand_training_steps_do_not_grow", "P05": "engine::test_builtin_sum_over_fifty_thousand_terms",
    "B01": "engine::test_an_error_in_a_hand_written_rule_surfaces_unchanged_and_no_gradient_moved",
    "B02": "tensor::test_a_failed_backward_leaves_every_gradient_as_it_was",
}


def test_every_case_of_the_bank_has_its_test():
    assert len(CASES) == 113
    there = {f"{path.stem.removeprefix('test_')}::{node.name}" for path in HERE.glob("test_*.py")
             for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}
    assert {case: test for case, test in CASES.items() if test not in there} == {}


# ------------------------------------------------------- corners of cases that no other test looks into
@pytest.mark.parametrize("x, t", [(math.inf, 1.0), (-math.inf, 0.0)])
def test_infinite_logits_of_the_right_class_give_nan_with_gradient_zero(x, t):                     # N23
    value, batch = Value(x), Tensor([x])
    with np.errstate(all="ignore"):                         # NumPy warns of inf - inf
        for loss in (nn.binary_cross_entropy_with_logits(value, t), nn.binary_cross_entropy_with_logits(batch, [t])):
            loss.backward()
            assert math.isnan(loss.item())
    assert value.grad == 0.0 and batch.grad.tolist() == [0.0]
