"""Tables that papers print, as inputs of tests; their figures stand in test_published_tables.py."""

from __future__ import annotations

# Cohen (1960), table 2: 200 diagnoses by two judges.
COHEN_1960 = [[88, 10, 2], [14, 40, 6], [18, 10, 12]]

# Landis and Koch (1977): multiple-sclerosis diagnoses of the Winnipeg patients by two neurologists.
WINNIPEG = [[38, 5, 0, 1], [33, 11, 3, 0], [10, 14, 5, 6], [3, 7, 3, 10]]

# The worked example of Fleiss' kappa on Wikipedia: 14 raters, 10 subjects, 5 categories.
FOURTEEN = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip

N = None
# Four observers, twelve units (Krippendorff 2011, section C; as cac.raw4raters in Gwet's irrCAC for R).
FOUR: list[list[int | None]] = [
    [1, 1, N, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [N, 5, 5, 5], [N, N, 1, 1], [N, N, 3, N],
]  # fmt: skip

# Shrout and Fleiss (1979), table 2: six targets, four judges.
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

# Bland and Altman (1986): peak flow (l/min), first readings with the large and the mini Wright meter.
LARGE = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]

# Stigler (1994), as in the BradleyTerry2 package for R: who was cited by whom. Rows win.
JOURNALS = ["Biometrika", "Comm Statist", "JASA", "JRSS-B"]
CITATIONS = [[0, 730, 498, 221], [33, 0, 68, 17], [320, 813, 0, 142], [284, 276, 325, 0]]

# Dawid and Skene (1979), table 1: 45 patients, seven readings each (observer 1 three times, then 2 to 5).
PATIENTS = """
1111111 3334334 1122122 2223121 2223222 2223322 1122111 3333433 2222223 2322223 4444444 2223343 1111111
2223212 1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111
2322222 1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432
1111111 1111111 1212111 2322222 1211111 2222222
"""
READINGS = [[int(grade) for grade in patient] for patient in PATIENTS.split()]
OBSERVERS = [1, 1, 1, 2, 3, 4, 5]
