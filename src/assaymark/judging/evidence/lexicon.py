"""Closed lists of words: what is too common to name a subject, what moves a number, and which words mean the same."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set.

    >>> sorted(word_set("up  down"))
    ['down', 'up']
    """
    return frozenset(text.split())


SYNONYMS = {
    "vol": "volatility", "vols": "volatility", "volatile": "volatility", "dd": "drawdown", "corr": "correlation",
    "correlated": "correlation", "returned": "return", "gained": "return", "gain": "return", "performance": "return",
    "momentum": "return", "zscore": "z", "scores": "score", "ranked": "rank", "percentile": "rank",
    "payrolls": "payroll", "nfp": "payroll", "jobs": "payroll", "employment": "payroll", "job": "payroll",
    "fomc": "fed", "federal": "fed", "feds": "fed", "fund": "fed", "funds": "fed",
    "treasuries": "treasury", "crude": "oil", "brent": "brent", "wti": "wti", "semis": "semiconductor",
    "semi": "semiconductor", "chips": "semiconductor", "chip": "semiconductor", "sox": "semiconductor",
    "phlx": "semiconductor", "tech": "technology", "biotech": "biotechnology", "korean": "korea", "kospi": "korea",
    "japanese": "japan", "nikkei": "japan", "chinese": "china", "unemployed": "unemployment", "btc": "bitcoin",
    "eth": "ethereum", "eps": "earning", "earnings": "earning", "inflationary": "inflation", "healthcare": "health",
    "spx": "s&p", "spy": "s&p", "sp500": "s&p", "s&p500": "s&p", "dowjones": "dow", "em": "emerging",
    "yields": "yield", "y": "yield", "advancers": "advancing", "decliners": "declining", "barrels": "barrel",
    "inventories": "inventory", "equities": "equity", "commodities": "commodity", "utilities": "utility",
    "industries": "industry", "securities": "security", "companies": "company", "beats": "beat", "ppi": "producer",
    "purchasing": "pmi",
}  # fmt: skip

STOP = word_set(
    """
    a an the of in on at to for from by with and or but as is was are were be been being it its this that these those
    than then so also into over under above below near around about after before during since until per vs versus
    while despite amid between among through within without not no only just still even more most less least very both
    all any some each up down rose rise rising fell fall falling gain gained lost loss declined decline dropped drop
    increased increase decreased higher lower high low strong weak positive negative recent prior last next current
    new first second third percent percentage point basi bp pct basis million billion trillion thousand k m b day week
    month year session quarter daily weekly monthly annual annually annualized yoy mom qoq ytd january february march
    april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday est et utc edt return rate index level market data price value growth
    change total report reported release released close closed settled showed show could would may might will can has
    have had which who their his her our we they u us s t q provided source observed status table number figure rank
    score relative active quality evidence catalyst continuation reversal invalidation selected rejected base forecast
    option holding portfolio
    """
)

DOWN = word_set(
    """
    down fell fall falling falls fallen drop drops dropped dropping decline declines declined declining lose loses
    lost losing loss losses off slid slide slides slump slumped plunge plunged tumble tumbled sank sink selloff
    drawdown pullback below underperform underperforms underperformed underperformance lag lags lagged lagging
    decreased decrease contracted contraction shed sheds correction retreat retreated dip dipped negative lower
    discount washout cut cuts trails trailed trailing giveback reversed weakened slipped slips minus eased easing
    crashed outflow outflows 跌 下跌 回撤 下降
    """
)
UP = word_set(
    """
    up rose rise rises rising risen gain gains gained gaining climb climbs climbed jump jumped jumps surge surged
    surges rally rallied advanced increase increased increases grew grow growth higher outperform outperforms
    outperformed outperformance added adds rebound rebounded soared spiked spike ahead beat beats leading plus
    涨 上涨 上升
    """
)
SPREAD = word_set(
    """
    outperform outperforms outperformed outperforming outperformance underperform underperforms underperformed
    underperforming underperformance versus vs relative ahead behind lag lags lagged lagging beat beats beating trails
    trailed spread gap difference differential active alpha excess over than minus steepening steep curve wider
    narrower premium against compared
    """
)
CHANGE = word_set(
    """
    rose rise rises rising fell fall falls falling up down drop dropped declined decline increased increase decreased
    change changed from wider tighter jump jumped added cut revised spread steep gap combined total sum together net
    average
    """
)
CONDITION = word_set(
    """
    below above under over beyond exceeds exceed exceeding if would could should unless least threshold until breaks
    break breaches breach trigger triggers toward towards target hold holds more than lags another
    """
)
