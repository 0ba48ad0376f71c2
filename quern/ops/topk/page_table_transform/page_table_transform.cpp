// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/topk/page_table_transform.h"

#include "quern/ops/topk/page_table_transform/ref.h"
#include "quern/ops/topk/select_row/select_row.h"

namespace quern::topk {

using A = PageTableTransformArgs;

constexpr i64 kSlots = i64(1) << 31;  ///< slots that i32 holds

static SelectParams params(const Call<A>& c) {
  const A& a = c.args;
  SelectParams p = row_params(a);
  p.out = static_cast<i32*>(a.out.data), p.out_stride = a.out.strides[0];
  p.pages = {integers(a.page_table),
             integers(a.row_to_batch),
             integers(a.page_table_row_starts),
             static_cast<i32*>(a.indices.data),
             a.page_table.strides[0],
             a.indices.strides[0],
             a.page_table.shape[0],
             a.page_table.shape[1],
             a.page_size,
             0};
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) { return plan_rows<params, A>(p, device, Ending::page_table); }

static Rejection table_fits(const Problem& p) {
  static const Axis rows = axis_of("rows"), length = axis_of("length");
  const i64 page_size = p.attr(&A::page_size), pages = p[Axis::max_pages];
  const bool starts = p.tensor(&A::row_starts).present, firsts = p.tensor(&A::page_table_row_starts).present;
  if (page_size < 1 || page_size > 1 << 30) return {"page_size", page_size, "1 to {}", 1 << 30};
  if (!p.tensor(&A::row_to_batch).present && p[Axis::batch] != p[rows])
    return {"batch", p[Axis::batch], "rows={}, as row_to_batch is absent", p[rows]};
  if (starts && !firsts)
    return {"page_table_row_starts", "absent", "a tensor, as row_starts is given: columns of x and of page_table are told one by one"};
  if (!p.tensor(&A::lengths).present && !starts && !firsts && pages < ceil_div(p[length], page_size))
    return {"max_pages", pages, "at least {}: the pages of a whole row of x", ceil_div(p[length], page_size)};
  return {};
}

/// A row's part lies in x, and its tokens have pages.
static Breach contract(const A& a, const Problem& p) {
  if (const Breach breach = rows_contract(a)) return breach;
  const i64 page_size = a.page_size;
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 length = length_of(a, row), first = a.page_table_row_starts.present() ? Ref(a.page_table_row_starts).index(row) : 0;
    const i64 request = a.row_to_batch.present() ? Ref(a.row_to_batch).index(row) : row, room = p[Axis::max_pages] - first,
              pages = ceil_div(length, page_size);
    if (pages > room && a.lengths.present())
      return {"lengths",
              {row},
              length,
              range_text(0, room * page_size) + ", as the row has " + std::to_string(room) + " pages of " + std::to_string(page_size) +
                  " tokens"};
    if (pages > room)
      return {"page_table_row_starts",
              {row},
              first,
              range_text(0, p[Axis::max_pages] - pages) + ", as the row has " + std::to_string(length) + " tokens"};
    for (i64 column = first; column < first + pages; ++column) {
      const i64 page = Ref(a.page_table).index(request, column);
      if (page < 0 || page >= kSlots / page_size)
        return {"page_table",
                {request, column},
                page,
                range_text(0, kSlots / page_size - 1) + ", as row " + std::to_string(row) + " has tokens there"};
    }
  }
  return {};
}

/// Pages of all numbers that there are; -1 where no row has tokens. With the word `beyond` some rows have no request, or no pages for all
/// of their tokens, and some pages have no slots that i32 holds.
static void generate(A& a, const Case& which, Random& random) {
  generate_rows(a.x, a.lengths, a.row_starts, random);
  const auto word = which.find("beyond");
  const bool beyond = word != which.end() && word->second != 0;
  const i64 batch = a.page_table.shape[0], columns = a.page_table.shape[1];
  const auto store = [](const TensorView& v, std::initializer_list<i64> at, i64 value) {
    store_integer(v.at(at.begin()), DType::i32, value);
  };
  for (i64 b = 0; b < batch; ++b)
    for (i64 column = 0; column < columns; ++column)
      store(a.page_table, {b, column}, beyond && random.below(4) == 0 ? 2147483647 - random.below(2) : -1);
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 pages = ceil_div<i64>(length_of(a, row), a.page_size), request = a.row_to_batch.present() ? random.below(batch) : row;
    const i64 first = a.page_table_row_starts.present() ? random.below(columns - pages + 1) : 0;
    if (a.row_to_batch.present()) store(a.row_to_batch, {row}, beyond && random.below(4) == 0 ? (random.below(2) ? batch : -1) : request);
    if (a.page_table_row_starts.present()) {
      const i64 none[] = {-1, columns, columns - 1, 2147483647};
      store(a.page_table_row_starts, {row}, beyond && random.below(3) == 0 ? none[random.below(4)] : first);
    }
    for (i64 column = first; column < first + pages; ++column)
      if (!beyond || random.below(3)) store(a.page_table, {request, column}, random.below(kSlots / a.page_size));
  }
}

static void derive(Case& which) {
  const i64 length = i64(which["length"]), page_size = i64(which["page_size"]);
  which["batch"] = which["row_to_batch.present"] != 0 ? Scalar(3) : which["rows"];
  which["max_pages"] = ceil_div(length, page_size) + 2;
  if (which["row_starts.present"] != 0) which["page_table_row_starts.present"] = true;
}

static Cost cost(const Problem& p, const A& a) { return rows_cost(p, a, a.indices.present() ? 12 : 8); }

QN_OP(page_table_transform, A, "topk.page_table_transform")
    .doc(
        "out = page_table[request, index / page_size] * page_size + index % page_size of the k largest of each row, by ascending index; -1 where a row has fewer")
    .with(state_rows<A>)
    .in("page_table", &A::page_table, "batch max_pages", {DType::i32})
    .values(generated())
    .contents(each_within("0", "2147483647").if_read())
    .meaning("pages of each request, whose slots i32 holds")
    .in("row_to_batch", &A::row_to_batch, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("batch"))
    .meaning("request of each row; absent: row r is of request r")
    .in("page_table_row_starts", &A::page_table_row_starts, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "max_pages"))
    .meaning("column of page_table that has a row's first tokens; absent: 0; not absent where row_starts is given")
    .with(state_k<A>)
    .attr("page_size", &A::page_size)
    .meaning("tokens of a page, from 1 to 2^30")
    .out("out", &A::out, "rows k", {DType::i32})
    .meaning("slots; -1 also of a token that has no page")
    .out("indices", &A::indices, "rows k", {DType::i32})
    .optional()
    .meaning("the indices that the slots are of; -1 where a row has fewer")
    .require(sizes_fit<A>)
    .require(table_fits)
    .plan(plan)
    .reference<page_table_transform_ref>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .exact(kWhyExact)
    .cases(rows_cases({{"page_size", {64, 1, 3, 32, 1 << 30}},
                       {"row_to_batch.present", {true, false}},
                       {"page_table_row_starts.present", {true, false}},
                       {"indices.present", {true, false}},
                       {"beyond", {0, 1}, "some tokens have no page (1)"},
                       {"page_table.pad", {0, 1}},
                       {"out.pad", {0, 1}},
                       {"indices.pad", {0, 1}}}),
           derive)
    .bench({{{"rows", 1}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 256}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}}});

}  // namespace quern::topk
