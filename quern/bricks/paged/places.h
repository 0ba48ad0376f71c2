// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the host says of places in a paged cache: conditions, parameters, the contract of their contents, contents of cases.
#pragma once
#include "quern/bricks/paged/spec.h"
#include "quern/op/contents.h"
#include "quern/op/problem.h"
#include "quern/op/random.h"
#include "quern/op/schema.h"

namespace quern::paged {

/// Which tensors a call has.
struct PlaceFacts {
  i32 slot_mapping, batch_indices, positions, page_table, page_indptr, page_indices;
};
inline Places places_of(const PlaceFacts& f) {
  return f.slot_mapping ? Places::slot_mapping : f.page_indptr ? Places::page_indices : Places::page_table;
}
/// The page tables of a schema, dense and CSR, for Schema::with.
template <class A> Schema<A>& state_page_tables(Schema<A>& schema) {
  return schema.in("page_table", &A::page_table, "batch max_pages", {DType::i32})
      .optional()
      .values(permutation_of(Axis::pages))
      .contents(each_below("pages").if_read())
      .in("page_indptr", &A::page_indptr, "batch+1", {DType::i32})
      .optional()
      .values(generated())
      .contents(each_within("0", "page_indices").ascending())
      .in("page_indices", &A::page_indices, "page_indices", {DType::i32})
      .optional()
      .values(permutation_of(Axis::pages))
      .contents(each_below("pages").if_read());
}
/// Beside slots no page table, else one.
QN_API Rejection one_page_table(const PlaceFacts& f);

/// The tensors of a call.
struct PlaceTensors {
  const TensorView &cache, &slot_mapping, &batch_indices, &positions, &page_table, &page_indptr, &page_indices;
};
QN_API PlaceParams place_params(const PlaceTensors& t);

/// A token that is not skipped has a place: its request has a page for it, which is one of the cache.
QN_API Breach places_contract(const PlaceTensors& t, i64 tokens);

/// Distinct places, and tokens that are skipped. Where the case's word `beyond` is 1, some indices break the contract, each in a way that
/// leaves a token without a place. Host tensors.
QN_API void generate_places(const PlaceTensors& t, i64 tokens, const Case& which, Random& random);

}  // namespace quern::paged
