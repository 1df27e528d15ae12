"""The service of macro series as the client `fredapi` hears it: series, observations and vintages, for one key."""

from __future__ import annotations

from loopback import Reply, serving

from assaymark.market import sources

KEY = "canary0123456789canary0123456789"
HEAD = '<?xml version="1.0" encoding="utf-8" ?>\n'
FIRST = (("2024-01-01", "3.7", "2024-02-02", "9999-12-31"), ("2024-02-01", "3.9", "2024-03-08", "9999-12-31"))
VINTAGES = (
    ("2023-12-01", "3.7", "2024-01-05", "2024-02-01"), ("2023-12-01", "3.8", "2024-02-02", "9999-12-31"),
    ("2024-01-01", "3.7", "2024-02-02", "9999-12-31"), ("2024-02-01", ".", "2024-03-08", "9999-12-31"),
)  # fmt: skip


def info(symbol: str, every: str) -> str:
    return (
        f'{HEAD}<seriess realtime_start="2024-03-08" realtime_end="2024-03-08">\n'
        f'<series id="{symbol}" realtime_start="2024-03-08" realtime_end="2024-03-08" title="{symbol} rate" '
        f'observation_start="1948-01-01" observation_end="2024-02-01" frequency="any" frequency_short="{every}" '
        'units="Percent" units_short="%" seasonal_adjustment="SA" last_updated="2024-03-08 07:50:02-06" '
        'popularity="94" notes="none"/>\n</seriess>\n'
    )


def observations(rows, limit: int = 100_000, count: int | None = None) -> str:
    lines = "".join(
        f'<observation realtime_start="{start}" realtime_end="{end}" date="{day}" value="{value}"/>\n'
        for day, value, start, end in rows
    )
    return (
        f'{HEAD}<observations realtime_start="2024-03-08" realtime_end="2024-03-08" observation_start="1600-01-01" '
        f'observation_end="9999-12-31" units="lin" output_type="1" file_type="xml" order_by="observation_date" '
        f'sort_order="asc" count="{count or len(rows)}" offset="0" limit="{limit}">\n{lines}</observations>\n'
    )


def error(message: str) -> Reply:
    return Reply(f'{HEAD}<error code="400" message="{message}"/>'.encode(), 400, "text/xml")


def service(every: str = "M", latest=FIRST, vintages=VINTAGES, **more: object):
    """The service with one series, UNRATE, and one key."""

    def answer(path: str, query: dict[str, str]) -> Reply:
        if query.get("api_key") != KEY:
            return error("Bad Request.  The value for variable api_key is not registered.")
        if query.get("series_id") != "UNRATE":
            return error("Bad Request.  The series does not exist.")
        if path == "/fred/series":
            return Reply(info("UNRATE", every).encode(), kind="text/xml")
        rows = vintages if query.get("realtime_start") == "1776-07-04" else latest
        return Reply(observations(rows, **more).encode(), kind="text/xml")

    return serving(answer, at="/fred/")


def asked(url: str, *symbols: str, key: str = KEY, **options: str) -> sources.Request:
    return sources.Request(
        symbols=symbols or ("UNRATE",), options={"endpoint": f"{url}/fred", "api_key": key, **options}
    )
