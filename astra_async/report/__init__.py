"""Reports: conclusions, tables, CSV files, plots and an HTML page, computed from run directories.

    packing, load, entries       load run directories into arrays
    table                        data type of every table
    estimates, common_problems, pairwise, paired_table, conclusions
                                 paired tests of two models, their table, and sentences on the result
    leaderboard, by_skill ...    one module for each group of tables
    turn_states, turn_tables     effect of follow-up turns
    tables                       all tables of a report, in reading order
    text, write, plots, page     output formats
    compare, precision           `astra compare` and `astra plan`

Importing numpy, scipy and matplotlib takes a second. Modules outside this package therefore import from
this package inside functions.
"""
