// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Providers whose code lies outside the library: those of the Python package, which registers them before it runs the command.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "quern/base/api.h"

namespace quern::bench {

/// What a guest does with one case in one mode. `set` counts the sets of buffers. All work on the default stream and throw Error.
struct GuestCall {
  std::string description;                ///< "torch 2.11.0"
  std::function<void(int set)> run;       ///< what is timed: computes, and may keep the results where it likes
  std::function<void(int set)> deliver;   ///< puts the results of the last run on that set into the case's output tensors
  std::function<double(int set)> memory;  ///< runs once; bytes that it took at most beside the case's tensors, its own results included
};

struct Guest {
  std::string name;
  std::string missing;  ///< what it would need, "the package torch: pip install torch"; empty: it is here
  /// `request` is guest_request() of a case. Throws Error{unsupported} where it has nothing for the op.
  std::function<GuestCall(const std::string& request)> make;
};

/// From now on a provider of that name is known; one of the same name is replaced.
QN_API void add_guest(Guest guest);
/// Null: there is none.
const Guest* find_guest(const std::string& name);
/// What `quern bench --plot` calls with the file that it has written and the ops that it has swept; null: nobody draws here.
QN_API void set_plotter(std::function<void(const std::string& csv, const std::vector<std::string>& ops)> plotter);
const std::function<void(const std::string& csv, const std::vector<std::string>& ops)>& plotter();

/// Names of the providers that the Python package has.
std::span<const char* const> python_providers();

class ModeCase;
/// A case for guests, as JSON: {"op", "mode", "device", "sets", "parts": [{"op", "gradients": {tensor: the op's tensor}, "attributes":
/// {name: number}, "sets": [{tensor: {"address", "dtype", "shape", "strides"} or null}]}]}. The first part is the op, which mode backward
/// does not time, the others are its gradients.
std::string guest_request(const ModeCase& which);

}  // namespace quern::bench
