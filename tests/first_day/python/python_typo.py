# python_typo.py: a typing mistake in a verb's name
# SPDX-License-Identifier: Apache-2.0
# ranks: 2
import tutti

tutti.init()
tutti.all_redcue(1)

# raises on every rank: AttributeError: tutti has no all_redcue; did you mean all_reduce or reduce?
