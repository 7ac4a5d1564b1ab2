"""From result lines to conclusions: tables, CSV files, plots and one HTML page.

    packing, load, entries       run directories as arrays
    table                        one table, whatever becomes of it
    pairwise, paired_table, conclusions
                                 two models on the same problems, and what may be said of them
    leaderboard, by_skill ...    one file for each question a report answers
    turn_states, turn_tables     what feedback is worth
    tables                       all of them, in the order of reading
    text, write, plots, page     what people and programs get to see
    compare, precision           `astra compare` and `astra plan`

numpy, scipy and matplotlib cost a second: import these where they are called.
"""
