# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Modules with the names and keyword arguments of other libraries, over quern's ops."""
