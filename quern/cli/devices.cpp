// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <cctype>
#include <cstdlib>

#include "quern/cli/commands.h"
#include "quern/device/emulated.h"

namespace quern::cli {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value:
    case ErrorKind::type:
    case ErrorKind::unsupported: return kBadInput;
    case ErrorKind::internal: return kWrong;
    default: return kEnvironment;
  }
}

std::string upper(std::string word) {
  for (char& c : word) c = char(std::toupper(c));
  return word;
}

template <class T>
static T word_of(const std::string& option, const std::string& text, const std::vector<std::pair<const char*, T>>& known) {
  std::string names;
  for (const auto& [name, value] : known) {
    if (text == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorKind::value, "", option, "is '" + text + "'", "one of " + names);
}

static AsyncPolicy async_of(const std::string& text) {
  return word_of<AsyncPolicy>("--async", text,
                              {{"eager", AsyncPolicy::eager}, {"lazy", AsyncPolicy::lazy}, {"random", AsyncPolicy::random}});
}
static SchedulePolicy schedule_of(const std::string& text) {
  return word_of<SchedulePolicy>(
      "--schedule", text, {{"warp", SchedulePolicy::warp_first}, {"fifo", SchedulePolicy::fifo}, {"shuffled", SchedulePolicy::shuffled}});
}

void Devices::add_emulated(const DeviceOptions& options, const std::string& name, int os_threads) {
  const Arch arch = name.size() > 4 ? Arch::parse(name.substr(4)) : Arch{};
  const std::vector<std::string> standard = {""};
  for (const std::string& async : options.async.empty() ? standard : options.async)
    for (const std::string& schedule : options.schedule.empty() ? standard : options.schedule) {
      EmulatedOptions how = emulated_options_from_env();
      if (os_threads) how.os_threads = os_threads;
      std::string words = "--device " + name;
      if (!async.empty()) how.async = async_of(async), words += " --async " + async;
      if (!schedule.empty()) how.schedule = schedule_of(schedule), words += " --schedule " + schedule;
      if (options.emu_seed != 1) how.seed = u64(options.emu_seed), words += " --emu-seed " + std::to_string(options.emu_seed);
      if (options.checked) how.checked = true, words += " --checked";
      if (options.asan) how.asan = true, words += " --asan";
      if (!options.host_compiler.empty()) words += " --host-compiler " + options.host_compiler;
      owned_.push_back(make_emulated_device(emulated_device_info(arch), how));
      list_.push_back({owned_.back().get(), words});
    }
}

void Devices::add_cuda(const std::string& name) {
  Device& device = device_from_name(name);
  list_.push_back({&device, "--device " + name});
  any_cuda_ = true;
}

Devices::Devices(const DeviceOptions& options, int os_threads) {
  if (!options.host_compiler.empty()) setenv("QN_JIT_HOST_COMPILER", options.host_compiler.c_str(), 1);
  const std::string& name = options.device;
  if (name == "emu" || name.starts_with("emu:")) {
    add_emulated(options, name, os_threads);
  } else if (name == "all") {
    add_emulated(options, "emu", os_threads);
    for (int i = 0; i < cuda_device_count(); ++i) add_cuda("cuda:" + std::to_string(i));
  } else if (name.empty()) {
    Device& device = device_from_name("");
    if (device.id().type == DeviceType::cuda) add_cuda("cuda:" + std::to_string(device.id().index));
    else add_emulated(options, "emu:" + device.info().arch.name(), os_threads);
  } else {
    add_cuda(name);
  }
}

std::vector<const Op*> ops_named(const std::string& word) {
  std::vector<const Op*> ops;
  for (const auto& [id, op] : registry())
    if (word.empty() || word == "all" || id == word || id.substr(0, id.find('.')) == word) ops.push_back(op);
  if (ops.empty()) ops.push_back(&find_op(word));  // throws, with the nearest
  return ops;
}

}  // namespace quern::cli
