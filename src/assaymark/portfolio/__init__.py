"""The arithmetic of holding: optimisers, strategies, drift and costs, risk, performance.

Will hold the maximum-Sharpe, minimum-variance and equal-risk-contribution solvers, the segment backtest, and
performance statistics: arithmetic on arrays that knows neither markets nor dates.
"""
