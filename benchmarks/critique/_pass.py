"""Write drafts, run one pass over them, and print its figures as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from autorubric import generate_critiques
from autorubric.apps.drafts import TeacherPrompt

_CRITIQUE = {
    "verdict": "pass",
    "issues": [
        {"type": "clarity", "severity": "low", "message": "Long sentences.", "evidence_path": "plan[0].text"}
    ],
    "scores": {"actionability": 4, "clarity": 3, "schema_compliance": 5, "safety_risk": 5},
    "hallucination": {"risk_level": "low", "risky_claims": [], "rationale": "Nothing that changes."},
    "verification": {"missing_when_needed": False, "suggested_steps": []},
    "schema": {"envelope_ok": True, "payload_ok": True, "notes": "", "missing_fields": []},
    "rewrite_instructions": ["Shorten the sentences"],
}
_TRACED = 10_000
"""Number of drafts up to which allocations are traced, which makes a pass many times slower."""


async def teacher(prompt: TeacherPrompt) -> dict[str, Any]:
    return {"id": prompt.draft_id, **_CRITIQUE}


def main() -> None:
    size, folder, resume = int(sys.argv[1]), Path(sys.argv[2]), bool(int(sys.argv[3]))
    drafts = folder / "drafts.jsonl"
    if not drafts.exists():
        with drafts.open("w", encoding="utf-8") as file:
            for number in range(size):
                output = {"plan": [{"text": f"Walk {number} along the river. " * 20}]}
                row = {
                    "id": f"draft_{number}",
                    "prompt": "Plan a day.",
                    "output": output,
                    "contract": {"ok": True},
                }
                file.write(json.dumps(row) + "\n")
    if size <= _TRACED:
        tracemalloc.start()
    started = time.perf_counter()
    stats = generate_critiques(drafts, folder, teacher, resume=resume)
    seconds = time.perf_counter() - started
    assert stats["records"] == size and stats["skipped"] == (size if resume else 0)
    traced = tracemalloc.get_traced_memory()[1] / 1e6 if size <= _TRACED else "–"
    figures = {
        "seconds": seconds,
        "drafts_per_second": size / seconds,
        # Linux counts in kilobytes, macOS in bytes.
        "process_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / (1e6 if sys.platform == "darwin" else 1e3),
        "traced_mb": traced,
        "file_mb": (folder / "critiques_v1.jsonl").stat().st_size / 1e6,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
