"""The steps of workflows/sales.js: functions from their inputs to their outputs."""
import json, os, pathlib, sys

def extract(day, **_):
    # The source: a query elsewhere.
    return {"shops": {"2026-11-22": []}.get(day, ["Lyon", "Nice", "Paris"])}

def total(item, **_):
    return {"shop": item, "euros": 10 * len(item)}

def report(total, day, currency, rate, **_):
    if not total:
        raise ValueError(f"no shop was open on {day}")
    amount = sum(shop["euros"] for shop in total) * rate
    return {"text": f"{day}: {amount:.2f} {currency} from {len(total)} shops"}

def publish(text, by, **_):
    pathlib.Path("report.txt").write_text(f"{text}, approved by {by}\n")

def excuse(failed, error, **_):
    pathlib.Path("report.txt").write_text(f"no report: {failed} failed, {error}\n")

if __name__ == "__main__":
    outputs = globals()[sys.argv[1]](**json.loads(os.environ["KELOS_ARGUMENTS"]))
    pathlib.Path(os.environ["KELOS_OUTPUTS"]).write_text(json.dumps(outputs or {}))
