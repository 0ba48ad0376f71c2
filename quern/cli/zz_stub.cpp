#include "quern/cli/commands.h"
namespace quern::cli { int new_op(const NewOptions&) { return 3; } }
