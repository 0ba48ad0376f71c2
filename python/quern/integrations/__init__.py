# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern inside models of other libraries: quern.integrations.transformers."""
