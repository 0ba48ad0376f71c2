// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/guests.h"

#include <deque>
#include <nlohmann/json.hpp>

#include "quern/bench/mode_case.h"

namespace quern::bench {

using Json = nlohmann::ordered_json;

static std::deque<Guest>& guests() {
  static auto* const all = new std::deque<Guest>;
  return *all;
}

void add_guest(Guest guest) {
  for (Guest& known : guests())
    if (known.name == guest.name) return void(known = std::move(guest));
  guests().push_back(std::move(guest));
}

const Guest* find_guest(const std::string& name) {
  for (const Guest& known : guests())
    if (known.name == name) return &known;
  return nullptr;
}

using Plotter = std::function<void(const std::string&, const std::vector<std::string>&)>;
static Plotter& the_plotter() {
  static auto* const one = new Plotter;
  return *one;
}
void set_plotter(Plotter plotter) { the_plotter() = std::move(plotter); }
const Plotter& plotter() { return the_plotter(); }

std::span<const char* const> python_providers() {
  static constexpr const char* kNames[] = {"torch", "torch_compile", "liger"};
  return kNames;
}

static Json json_of(const TensorView& v) {
  if (!v.present()) return nullptr;
  return {{"address", reinterpret_cast<int64_t>(v.data)},
          {"dtype", quern::name(v.dtype)},
          {"shape", std::vector<i64>(v.shape, v.shape + v.rank)},
          {"strides", std::vector<i64>(v.strides, v.strides + v.rank)}};
}

std::string guest_request(const ModeCase& which) {
  const DeviceId device = which.device().id();
  Json request = {{"op", which.op().id},
                  {"mode", name(which.mode())},
                  {"device", device.type == DeviceType::cuda ? "cuda:" + std::to_string(device.index) : "cpu"},
                  {"sets", which.sets()},
                  {"parts", Json::array()}};
  for (const auto& part : which.parts()) {
    const Op& op = *part->op;
    Json p = {{"op", op.id}, {"gradients", Json::object()}, {"attributes", Json::object()}, {"sets", Json::array()}};
    for (const auto& [gradient, of] : part->gradients) p["gradients"][gradient] = of;
    for (const AttrDef& a : op.attrs) {
      const Scalar value = attr_value(a, part->host.args());
      p["attributes"][a.name] = value.is_real() ? Json(double(value)) : Json(value.integer());
    }
    for (int set = 0; set < which.sets(); ++set) {
      Json tensors = Json::object();
      for (size_t i = 0; i < op.tensors.size(); ++i)
        if (!op.tensors[i].any_shape()) tensors[op.tensors[i].name] = json_of(op.tensor(part->sets->args(set), i));
      p["sets"].push_back(std::move(tensors));
    }
    request["parts"].push_back(std::move(p));
  }
  return request.dump();
}

}  // namespace quern::bench
