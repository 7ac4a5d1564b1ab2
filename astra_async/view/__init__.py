"""A run looked at while it happens: `astra view`, a process of its own that only reads.

    tails, logs, following
                        one run directory's files, read on from where the last look ended
    board               several directories as one grid of samples: ids, cells, columns
    overview, opened    what the pages show: how the run stands, and one sample with all its texts
    replay, finding     an answer's changes made again; tests, search, two models compared
    access, serving     who may ask; the addresses, the stream of changes, the server

Nothing is locked, and nothing written but `labels.csv`, at the user's word.
"""
