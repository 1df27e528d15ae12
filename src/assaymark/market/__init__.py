"""What was knowable when: instruments, history, as-of views, regimes, correlation, the synthetic market, sources.

Will hold the price store and its as-of views, the calendar and gap rule, pairwise-complete correlation, regimes, macro
series with their release dates, news, the calibrated synthetic market of six asset classes, and the sources of real
prices. Nothing that decides, judges, measures or certifies can import it.
"""
