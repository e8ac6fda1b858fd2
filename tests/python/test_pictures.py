"""Pictures of id graphs: every format from the command line, and the page in a real browser.

The browser is Chromium without a window: chromium-headless-shell, chromium or Chrome on the path, or the program that
FUSEBOX_BROWSER names. A script in a copy of the page operates it and writes what it sees into the document.
"""

import html
import json
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree
import zlib

import pytest

from support import PROGRAMS, SHARED, fusebox

FILES = sorted(PROGRAMS.glob("*.fir"))
SOFTMAX = PROGRAMS / "softmax.fir"
KINDS = ["exact", "almost-exact", "broadcast", "permissive", "loop"]

BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"]


def starts(browser):
    return subprocess.run([browser, "--version"], capture_output=True, timeout=60, check=False).returncode == 0


BROWSER = os.environ.get("FUSEBOX_BROWSER") or next(filter(starts, filter(None, map(shutil.which, BROWSERS))), None)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser found: install one of {', '.join(BROWSERS)}, or name it in FUSEBOX_BROWSER")

EVIL = """fusion @"</script><b>&\\"" {
  %"</title><i>'" = size
  %"--><x>" = input f32[%"</title><i>'"] contiguous
  %"{{data}}" = exp %"--><x>"
  output %"{{data}}"
}
steps @"</script><b>&\\"" {
  split %"{{data}}".i0 by 4 -> o, t
}
inputs @"</script><b>&\\"" host {
  %"--><x>" = f32[7] normal seed 1
}
"""

def picture(file, kind, form, *options):
    ran = fusebox("show", file, "--graph", kind, "--format", form, *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def evil(tmp_path):
    path = tmp_path / "evil.fir"
    path.write_text(EVIL)
    return path


# -- the command line


@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_every_graph_of_a_program_in_every_format(program):
    domains = fusebox("show", program, "--graph", "exact", "--json").stdout.splitlines()
    assert domains
    for kind in KINDS:
        document = xml.etree.ElementTree.fromstring(picture(program, kind, "svg").encode())
        # A domain in two rows is drawn twice.
        kernels = [{d.get("data-d") for d in k.findall(".//*[@data-d]")} for k in document.findall("./*[@class='program']")]
        assert sum(map(len, kernels)) == len(domains)
        assert all(drawn == {str(i) for i in range(len(drawn))} for drawn in kernels)
        assert all(d.find("{http://www.w3.org/2000/svg}title").text for d in document.findall(".//*[@data-d]"))
        text = picture(program, kind, "text")
        assert f", {kind} graph" in text
        assert picture(program, kind, "dot").count("subgraph cluster_") == len(re.findall(r"^  domain +type", text, re.MULTILINE))
        assert f'data-kind="{kind}"' in picture(program, kind, "html")


def test_json_is_a_line_for_each_domain():
    lines = [json.loads(line) for line in fusebox("show", SOFTMAX, "--graph", "exact", "--json").stdout.splitlines()]
    i1 = next(line for line in lines if line["domain"] == "%y.i1")
    assert i1["index"] == "128*o + t" and i1["check"] == "128*o + t < n" and i1["holes"] is True
    x = next(line for line in lines if line["domain"] == "%x.i1")
    assert x["group"] == i1["group"] and x["index"] == ""
    assert {"by": "%xf", "index": "128*o + t"} in x["reads"]


def test_each_kernel_of_an_unfused_program_has_its_picture():
    text = picture(SOFTMAX, "exact", "text", "--unfused")
    assert len(re.findall(r"^// @", text, re.MULTILINE)) > 5


def test_an_illegal_schedule_is_drawn_with_the_reason(tmp_path):
    path = tmp_path / "illegal.fir"
    path.write_text((SHARED / "illegal.fir").read_text())
    refused = fusebox("show", path, "--level", "kernel", "--json")
    assert refused.returncode == 2
    code = json.loads(refused.stdout)["error"]["code"]
    text = picture(path, "exact", "text")
    assert code in text and "block.x" in text
    assert code in picture(path, "exact", "svg")


def test_a_bundle_shows_what_it_recorded(tmp_path):
    bundle = tmp_path / "softmax.fuse"
    assert fusebox("run", SOFTMAX, "--on", "host", "--record", bundle).returncode == 0
    assert picture(bundle, "exact", "text") == picture(SOFTMAX, "exact", "text")


@pytest.mark.parametrize("arguments", [
    ["--graph", "exact", "--level", "kernel"], ["--format", "svg"], ["--format", "html", "--level", "kernel"],
    ["--graph", "unknown"]], ids=" ".join)
def test_wrong_usage_is_refused(arguments):
    ran = fusebox("show", SOFTMAX, *arguments)
    assert ran.returncode == 2 and ran.stdout == ""


def test_any_name_gives_a_well_formed_drawing(evil):
    text = xml.etree.ElementTree.fromstring(picture(evil, "exact", "svg").encode())
    assert any("--><x>" in (t.text or "") for t in text.iter("{http://www.w3.org/2000/svg}title"))


# -- the browser


def browse(page, tmp_path, *options, script="", size="1600,1000"):
    """The browser's output for a page after `script` has run at its end. Asserts that the browser reported no problem."""
    path = tmp_path / "page.html"
    catch = "<script>window.faults = []; addEventListener('error', e => faults.push(e.message)); " \
        "addEventListener('securitypolicyviolation', e => faults.push(e.violatedDirective));</script>"
    report = f"<pre id='report'></pre><script>document.getElementById('report').textContent = " \
        f"JSON.stringify((() => {{ {script} }})() ?? null);" \
        "document.getElementById('report').dataset.faults = JSON.stringify(faults);</script>"
    assert page.count("</body>") == 1 and page.count("<head>") == 1
    path.write_text(page.replace("<head>", "<head>" + catch).replace("</body>", report + "</body>"), encoding="utf-8")
    ran = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
         "--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=2000", f"--window-size={size}", *options,
         path.as_uri()],
        capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "CONSOLE" not in ran.stderr, ran.stderr
    return ran.stdout


def work(page, tmp_path, script):
    """Runs `script` in the page and returns its result."""
    dom = browse(page, tmp_path, "--dump-dom", script=script)
    found = re.search(r'<pre id="report" data-faults="([^"]*)">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    assert json.loads(html.unescape(found.group(1))) == []
    return json.loads(html.unescape(found.group(2)))


TOOLS = """
const domainOf = name => {
  for (let p = 0; p < programs.length; ++p) {
    const i = programs[p].domains.findIndex(d => d.name === name);
    if (i >= 0) return sheets[p].querySelector(`.domain[data-d="${i}"]`);
  }
};
const point = (node, what) => node.dispatchEvent(new PointerEvent(what, {bubbles: false}));
const nameOf = node => programs[programOf(node)].domains[node.dataset.d].name;
const chosen = () => [...new Set([...document.querySelectorAll('.domain.member')].map(nameOf))];
const pick = kind => document.querySelector(`#kinds input[value="${kind}"]`).click();
"""


@needs_browser
@pytest.mark.parametrize("program", FILES, ids=lambda p: p.stem)
def test_a_page_shows_every_domain_legibly(program, tmp_path):
    # Measured by the browser: nothing overlaps, all text is inside its box, and the pointer hits the box.
    seen = work(picture(program, "exact", "html"), tmp_path, TOOLS + """
      const overlaps = [], outside = [], hidden = [];
      const inside = (a, b) => a.left >= b.left - 0.5 && a.right <= b.right + 0.5 && a.top >= b.top - 0.5 && a.bottom <= b.bottom + 0.5;
      for (const svg of svgs) {
        const card = svg.querySelector('.card').getBoundingClientRect();
        const boxes = [...svg.querySelectorAll('.domain .box, .transform rect')].map(b => b.getBoundingClientRect());
        boxes.forEach((a, i) => boxes.slice(0, i).forEach(b => {
          if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) overlaps.push(svg.dataset.tensor);
        }));
        for (const text of svg.querySelectorAll('text')) {
          const around = text.closest('.domain')?.querySelector('.box').getBoundingClientRect() ??
            text.closest('.transform')?.querySelector('rect').getBoundingClientRect() ?? card;
          if (text.textContent && !inside(text.getBoundingClientRect(), around)) outside.push(text.textContent);
        }
        for (const domain of svg.querySelectorAll('.domain')) {
          domain.scrollIntoView({block: 'center'});
          const b = domain.querySelector('.box').getBoundingClientRect();
          if (document.elementFromPoint((b.left + b.right) / 2, b.bottom - 2)?.closest('.domain') !== domain) hidden.push(nameOf(domain));
        }
      }
      const sizes = svgs.map(s => s.getBoundingClientRect()).map(r => [r.width, r.height]);
      return {overlaps, outside, hidden, sizes, tensors: programs.flatMap(p => p.tensors.map(t => t.name)),
              fetched: performance.getEntriesByType('resource').map(r => r.name)};
    """)
    assert seen["fetched"] == []
    assert len(seen["sizes"]) == len(seen["tensors"]) > 0
    assert all(width > 50 and height > 50 for width, height in seen["sizes"])
    assert (seen["overlaps"], seen["outside"], seen["hidden"]) == ([], [], [])


@needs_browser
def test_pointing_tells_index_and_predicate_and_shows_the_group(tmp_path):
    seen = work(picture(SOFTMAX, "exact", "html"), tmp_path, TOOLS + """
      const node = domainOf('%y.i1'), before = chosen();
      point(node, 'pointerenter');
      const during = chosen(), details = document.getElementById('details').innerText;
      const faded = getComputedStyle(domainOf('%y.i0')).opacity, kept = getComputedStyle(node).opacity;
      point(node, 'pointerleave');
      const after = chosen();
      node.dispatchEvent(new MouseEvent('click', {bubbles: true}));
      point(node, 'pointerleave');
      const pinned = chosen();
      document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
      node.focus();
      const focused = chosen();
      return {before, during, details, faded, kept, after, pinned, released: chosen(), focused, title: node.querySelector('title').textContent};
    """)
    group = json_group(SOFTMAX, "exact", "%y.i1")
    assert seen["before"] == [] and seen["after"] == []
    assert set(seen["during"]) == set(seen["pinned"]) == set(seen["focused"]) == group and len(group) > 5
    assert "128*o + t" in seen["details"] and "128*o + t < n" in seen["details"]
    assert "index: 128*o + t\npredicate: 128*o + t < n\nwhy: nothing shows" in seen["title"] and "\nexact group" in seen["title"]
    assert float(seen["faded"]) < 0.5 and float(seen["kept"]) == 1


def json_group(program, kind, name):
    lines = [json.loads(line) for line in fusebox("show", program, "--graph", kind, "--json").stdout.splitlines()]
    number = next(line["group"] for line in lines if line["domain"] == name)
    return {line["domain"] for line in lines if line["group"] == number} if number else {name}


@needs_browser
def test_switching_the_graph_colours_numbers_and_tells_its_groups(tmp_path):
    seen = work(picture(SOFTMAX, "exact", "html"), tmp_path, TOOLS + """
      return ['exact', 'almost-exact', 'broadcast', 'permissive', 'loop'].map(kind => {
        pick(kind);
        const node = domainOf('%mxb.i1'), y = domainOf('%y.o');
        point(node, 'pointerenter');
        const members = chosen();
        point(node, 'pointerleave');
        return {kind: document.body.dataset.kind, members, number: y.querySelector('.group').textContent,
                fill: getComputedStyle(y.querySelector('.box')).fill, title: y.querySelector('title').textContent,
                listed: document.querySelectorAll('#groups .group-row').length};
      });
    """)
    assert [s["kind"] for s in seen] == KINDS
    for s in seen:
        lines = [json.loads(line) for line in fusebox("show", SOFTMAX, "--graph", s["kind"], "--json").stdout.splitlines()]
        y = next(line for line in lines if line["domain"] == "%y.o")
        assert s["number"] == (f"#{y['group']}" if y["group"] else "")
        assert f"{s['kind']} group" in s["title"]
        assert s["listed"] == max(line["group"] for line in lines)
        assert set(s["members"]) == json_group(SOFTMAX, s["kind"], "%mxb.i1")
        assert (s["fill"] == "rgb(255, 255, 255)") == (y["group"] == 0)
    assert any(len(s["members"]) > 1 for s in seen)  # a broadcast is one with what concretizes it


@needs_browser
def test_the_address_chooses_the_graph(tmp_path):
    script = "location.hash = '#loop'; dispatchEvent(new Event('hashchange')); return document.body.dataset.kind;"
    assert work(picture(SOFTMAX, "exact", "html"), tmp_path, script) == "loop"


@needs_browser
def test_filter_and_steps(tmp_path):
    seen = work(picture(SOFTMAX, "exact", "html", "--unfused"), tmp_path, TOOLS + """
      const shown = () => svgs.filter(s => s.getBoundingClientRect().width > 0).map(s => programs[s.dataset.program].tensors[s.dataset.tensor].name);
      const all = shown();
      const box = document.getElementById('filter');
      box.value = 'mx'; box.dispatchEvent(new Event('input'));
      const some = shown(), count = document.getElementById('count').textContent;
      box.value = ''; box.dispatchEvent(new Event('input'));
      const choice = document.getElementById('programs');
      choice.value = '1'; choice.dispatchEvent(new Event('change'));
      const one = shown();
      const steps = [...document.querySelectorAll('#steps li')].map(li => li.textContent);
      point(document.querySelector('#steps li'), 'pointerenter');
      return {all, some, count, one, wanted: programs[1].tensors.map(t => t.name), steps, given: programs[1].steps, touched: chosen()};
    """)
    assert set(seen["some"]) == {"%mx", "%mxb"} and len(seen["all"]) > len(seen["some"])
    assert seen["count"].startswith(f"{len(seen['some'])} of {len(seen['all'])} ")
    assert seen["one"] == seen["wanted"]
    assert seen["steps"] == seen["given"] and seen["steps"]
    assert seen["touched"]


@needs_browser
def test_any_name_is_text_in_the_page(evil, tmp_path):
    seen = work(picture(evil, "exact", "html"), tmp_path, TOOLS + """
      const node = domainOf('%"{{data}}".o');
      point(node, 'pointerenter');
      return {heading: document.querySelector('h1').textContent, stray: document.querySelectorAll('b, x, i, p:not(.quiet)').length,
              details: document.getElementById('details').innerText, tensors: programs[0].tensors.map(t => t.name)};
    """)
    assert seen["heading"] == '</script><b>&"'
    assert seen["stray"] == 0
    assert '%"{{data}}".o' in seen["details"]
    assert seen["tensors"] == ['%"--><x>"', '%"{{data}}"']


def pixels(path):
    """The colours of an 8-bit PNG with their counts."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    assert depth == 8 and colour in (2, 6) and not interlaced
    step = 3 if colour == 2 else 4
    raw, row, counts, before = zlib.decompress(packed), width * step, {}, bytes(width * step)
    for y in range(height):
        how, line = raw[y * (row + 1)], bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row if how else 0):
            a, b, c = line[i - step] if i >= step else 0, before[i], before[i - step] if i >= step else 0
            if how == 4:
                a = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = line[i] + (a, a, b, (a + b) // 2, a)[how] & 255
        for i in range(0, row, step):
            key = bytes(line[i:i + 3])
            counts[key] = counts.get(key, 0) + 1
        before = line
    return width, height, counts


@needs_browser
def test_a_screenshot_has_the_colours_of_the_groups(tmp_path):
    shot = tmp_path / "page.png"
    browse(picture(SOFTMAX, "exact", "html"), tmp_path, f"--screenshot={shot}", size="1200,700")
    width, height, counts = pixels(shot)
    assert (width, height) == (1200, 700)
    for colour in "77aadd", "ee8866", "eedd88", "ffaabb":  # groups 1 to 4
        assert counts.get(bytes.fromhex(colour), 0) > 500, colour
    assert counts.get(bytes.fromhex("b3261e"), 0) > 500  # holes
