"""Runs a campaign of `fusebox fuzz` on each mutant and keeps a JSON line for each in results.jsonl."""

import concurrent.futures
import json
import os
import signal
import subprocess
import threading
import time

# Seconds that a campaign may run over its time, for the start and the last case.
GRACE = 60


def read_results(path):
    """The results by number. The last line for a number counts; a line that was cut off does not."""
    results = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            results[row["id"]] = row
    return results


def parse_output(output):
    """The first finding and the number of cases; None for what the process did not reach."""
    finding, cases = None, None
    for line in output.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if "signature" in row and (finding is None or row.get("case", 0) < finding.get("case", 0)):
            finding = row
        if "cases" in row:
            cases = row["cases"]
    return finding, cases


def judge(code, output, errors, seconds):
    """The outcome of a finished campaign, and what killed the mutant."""
    finding, cases = parse_output(output)
    result = {"outcome": "survived", "cases": cases, "seconds": round(seconds, 2)}
    if code == 0:
        return result
    result["outcome"] = "killed"
    if code == 1 and finding:
        result |= {"by": finding.get("stage", ""), "signature": finding["signature"], "message": finding.get("message", "")[:400]}
    elif code is None:
        result |= {"by": "hang", "signature": "hang"}
    else:
        # The command line itself died: before it drew a case, or while it added up results.
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        result |= {"by": "command", "signature": f"command {name}", "message": (errors or output)[-400:]}
    return result


class Campaigns:
    def __init__(self, program, folder, seconds, seeds, jobs):
        self.program, self.folder, self.seconds, self.seeds, self.jobs = program, folder, seconds, seeds, jobs
        self.path = folder / "results.jsonl"
        self.results = read_results(self.path)
        self.notes = folder / "notes"
        self.notes.mkdir(exist_ok=True)
        self.lock, self.running, self.stopping = threading.Lock(), set(), False

    def run_one(self, mutant, number, seed):
        """`mutant` 0 runs the copy without a mutant; `number` is the row."""
        if self.stopping:
            return None
        notes = self.notes / f"{number}"
        notes.write_bytes(bytes(2))
        environment = {**os.environ, "FUSEBOX_MUTANT": str(mutant), "FUSEBOX_MUTANT_NOTES": str(notes), "OMP_NUM_THREADS": "1"}
        command = [str(self.program), "--json", "fuzz", "--time", f"{self.seconds}s", "--case-time", f"{min(10, self.seconds)}s",
                   "--stop-after", "1", "--jobs", "1", "--seed", str(seed)]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env=environment, start_new_session=True)
        with self.lock:
            self.running.add(process)
        try:
            output, errors = process.communicate(timeout=self.seconds + GRACE)
            code = process.returncode
        except subprocess.TimeoutExpired:
            code = None
        with self.lock:
            self.running.discard(process)
        # A worker may still run.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if code is None:
            output, errors = process.communicate()
        if self.stopping:
            return None
        result = judge(code, output, errors, time.monotonic() - began)
        reached, other = notes.read_bytes()
        notes.unlink()
        row = {"id": number, "seed": seed, "time": self.seconds, **result, "reached": bool(reached), "differed": bool(other)}
        with self.lock:
            self.results[number] = row
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return row

    def is_known(self, number):
        """True if the mutant needs no run. A longer campaign may kill a mutant that survived a shorter one."""
        row = self.results.get(number)
        return row is not None and (row["outcome"] == "killed" or row["time"] >= self.seconds)

    def run(self, tasks, done, limit=None):
        """Runs the tasks [(mutant, row, seed)] that have no result yet, several at a time. False if the time ran out."""
        tasks = [t for t in tasks if not self.is_known(t[1])]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(self.run_one, *task) for task in tasks]
            try:
                for future in concurrent.futures.as_completed(futures, timeout=limit):
                    if row := future.result():
                        done(row)
            except (concurrent.futures.TimeoutError, KeyboardInterrupt) as stop:
                self.stop()
                if isinstance(stop, KeyboardInterrupt):
                    raise
        return not self.stopping

    def stop(self):
        """Ends the running campaigns; another run repeats them."""
        self.stopping = True
        with self.lock:
            for process in self.running:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
