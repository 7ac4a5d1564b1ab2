"""`astra view`: a web viewer of runs in progress or finished; a separate process that only reads.

    logs, following     incremental reading of one run directory's files
    board               several directories as one grid of samples: ids, cells, columns
    overview, opened    data of the pages: summary of the runs; one sample with all its texts
    replay, finding     diff of an answer; per-test results, search, comparison of two models
    watching            the task that reads the directories and sends changes to the pages
    access, serving     access control; HTTP routes and the server

The viewer takes no locks and writes only `labels.csv`, on the user's request.
"""
