# python_spawn_lambda.py: spawn of a lambda
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.spawn(lambda: tutti.init().rank, nprocs=2)

# raises on every rank: tutti.InvalidArgument: spawn: <lambda> is a lambda, which the new processes cannot import; define it with def at the top level of the script, or pass start_method="fork"
