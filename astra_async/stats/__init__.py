"""Statistics on small tables: pure functions, each with its formula and source.

Notation: n problems, k samples each, score s_ij = p_ij / T_i, problem mean m_i, s_i^2 the variance of
problem i's scores with ddof = 1. The unit of every interval and test is the problem: the n * k samples
are never treated as independent (such intervals cover 31 to 33 % where they say 95 %).

    intervals     means over problems, rates
    differences   two models on the same problems, two sets of samples of one, many tests at once
    passes        pass@m, pass^m, G-Pass@m
    spread        variance within and between problems, median SD
    power         what a run of this size can see
    sequential    looks after whole rounds: who goes on
    correlation   two lengths or scores over problems

scipy is imported where it is used: importing these modules costs only numpy.
"""
