"""Statistics: pure functions, each with its formula and source.

Notation: n problems, k samples each, score s_ij = p_ij / T_i, problem mean m_i, and s_i^2 for the variance of
problem i's scores with ddof = 1. The unit of every interval and test is the problem. The n * k samples are
never treated as independent: 95 % intervals under that assumption cover the true value in only 31 to 33 % of
cases.

    intervals     intervals of means, medians and differences over problems; power and sample sizes
    differences   paired tests of two models, tests within one problem, adjustment for several tests
    spread        pass@m, pass^m, G-Pass@m; variance within and between problems
    sequential    interim analyses after complete rounds
    association   correlation over problems, agreement of raters

scipy is imported inside functions, because its import is slow.
"""
