# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`python -m quern`: the command."""
import sys

from ._command import main

sys.exit(main())
