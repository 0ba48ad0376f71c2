# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The k largest of each row."""
import enum

import quern
from quern import _check
from quern.compat.flashinfer._base import call, one_of, tensor


class TopKTieBreak(enum.IntEnum):
    """Which of equal values at the boundary are taken: any, those of the lowest or of the highest index."""
    NONE = 0
    SMALL = 1
    LARGE = 2


def _options(where, deterministic, tie_break, dsa_graph_safe):
    """quern's selection is deterministic, safe in a graph, and takes the lowest index."""
    _check.boolean(f"flashinfer.{where}", "deterministic", deterministic), _check.boolean(f"flashinfer.{where}", "dsa_graph_safe", dsa_graph_safe)
    one_of(where, "tie_break", _check.integer(f"flashinfer.{where}", "tie_break", tie_break, 0, 2), {0: None, 1: None, 2: "quern.topk.select takes the lowest indices of equal values"})


def top_k(input, k, sorted=False, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False):
    """(values, int64 indices) of the k largest of each row; sorted: by descending value, else by ascending index. Of equal values those of the lowest
    indices."""
    _options("top_k", deterministic, tie_break, dsa_graph_safe)
    tensor("top_k", "input", input, 2)
    _check.integer("flashinfer.top_k", "k", k, 0, input.size(1))
    indices, values = call("top_k", quern.topk.select, {"x": "input"}, x=input, k=k, sorted=_check.boolean("flashinfer.top_k", "sorted", sorted), values=True)
    return values, indices.long()


def top_k_ragged_transform(input, offsets, lengths, k, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None):
    """offsets[row] + index of the k largest among the first lengths[row] of each row, int32 [rows, k]; -1 behind those of a row that has fewer."""
    where = "top_k_ragged_transform"
    _options(where, deterministic, tie_break, dsa_graph_safe)
    tensor(where, "input", input, 2), tensor(where, "offsets", offsets, 1)
    return call(where, quern.topk.ragged_transform, {"x": "input"}, x=input, offsets=offsets, lengths=lengths, row_starts=row_starts, k=k)


def top_k_page_table_transform(input, src_page_table, lengths, k, row_to_batch=None, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None,
                               page_table_row_starts=None, *, page_size=1, out=None, out_raw_indices=None):
    """src_page_table[row, first + index // page_size] * page_size + index % page_size of the same; row_to_batch names the row of the table. first is
    page_table_row_starts, else row_starts of pages of one token, else 0. The indices themselves go to out_raw_indices where it is given."""
    where = "top_k_page_table_transform"
    _options(where, deterministic, tie_break, dsa_graph_safe)
    tensor(where, "input", input, 2), tensor(where, "src_page_table", src_page_table, 2)
    if _check.integer(f"flashinfer.{where}", "page_size", page_size, 1, 1 << 30) == 1 and page_table_row_starts is None:
        page_table_row_starts = row_starts
    results = call(where, quern.topk.page_table_transform, {"x": "input", "page_table": "src_page_table", "indices": "out_raw_indices"}, x=input, page_table=src_page_table, lengths=lengths,
                   row_starts=row_starts, row_to_batch=row_to_batch, page_table_row_starts=page_table_row_starts, k=k, page_size=page_size, out=out, indices=out_raw_indices)
    return results[0] if isinstance(results, tuple) else results
