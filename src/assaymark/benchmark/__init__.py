"""PortBench: questions with exact answers, five pipeline stages, the oracle, scores, profiles, stress windows.

Will hold question generation and scoring, the S1..S5 episode with its sandbox and truths, CEPS and the two-layer
correlation score, risk profiles and the stress gate. It knows what happened next, so nobody who grades can import it.
"""
