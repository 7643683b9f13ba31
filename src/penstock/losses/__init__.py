"""The equations: returns, policy, value and entropy terms. Arrays in, arrays out.

This room knows no network, no environment, no schedule and no settings; every number it needs is an argument.
Symbols in its legends: r reward, V value, A advantage, G return, t the step, gamma and lambda the two discounts.
"""
