// One case: its answer with the claims coloured, what is known of each, and its evidence in the documents.

const NEAR = 20000;
const METER = ["pass", "fail"];

const shortDigits = (value) => value.toFixed(3);

function body(one) {
  const judged = Object.entries(one.verdicts).find(([, verdict]) => verdict.claims.length);
  const claims = judged?.[1].claims ?? [];
  const about = element("p", { class: "about", "aria-live": "polite", hidden: "" });
  const evidence = element("div", { class: "documents" }, element("h4", {}, one.documents.length ? "Evidence" : "No evidence"));
  const found = one.documents.map((place, i) => documentCard(documentAt(place), i));
  evidence.append(...found.map((card) => card.made));
  const answer = isolated("p", "", { class: "text answer" });
  const marks = one.answer ? answerText(answer, one.answer, claims) : (answer.append("No answer."), new Map());
  const threshold = judged?.[1].threshold ?? null;
  const choose = (claim) => {
    for (const [other, pieces] of marks) {
      for (const piece of pieces) piece.setAttribute("aria-pressed", String(other === claim));
    }
    explain(about, claim, one, threshold);
    for (const [i, card] of found.entries()) card.mark(claim.evidence?.document === i ? claim : null);
  };
  for (const [claim, pieces] of marks) {
    for (const piece of pieces) {
      piece.addEventListener("click", () => choose(claim));
      piece.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(claim);
      });
      const share = claim.support === null ? 0.5 : stretched(claim.support, threshold ?? 0.5);
      piece.style.setProperty("--s", share.toFixed(3));
    }
  }
  const left = element("div", {}, ...broken(one),
    ...(one.question ? [element("h4", {}, "Question"), isolated("p", one.question, { class: "text" })] : []),
    element("h4", {}, "Answer"), answer, about, ...verdicts(one), facts(one));
  const made = element("div", { class: "body" }, left, evidence);
  const first = worst(claims);
  if (first) choose(first);
  return made;
}

// What the evidence lacked comes before what was made of it.
function broken(one) {
  if (one.broken !== "retrieval") return [];
  const failed = one.verdicts.retrieval?.outcome === "fail" ? one.verdicts.retrieval
    : Object.values(one.verdicts).find((verdict) => verdict.outcome === "fail" && !verdict.claims.length);
  return [element("p", { class: "about fail" }, element("b", {}, "Retrieval broke"), ...(failed ? [": ", isolated("bdi", failed.feedback)] : []))];
}

// The threshold in the middle, so that colours tell how far a support is from it.
function stretched(support, threshold) {
  if (support <= threshold) return threshold ? support / threshold / 2 : 0;
  return 0.5 + (support - threshold) / (1 - threshold) / 2;
}

function worst(claims) {
  const rank = (claim) => TROUBLE.indexOf(claim.outcome) * 2 + (claim.support ?? 1);
  return claims.length ? claims.reduce((a, b) => (rank(b) < rank(a) ? b : a)) : null;
}

function answerText(answer, text, claims) {
  const marks = new Map();
  const placed = claims.filter((claim) => claim.span).sort((a, b) => a.span[0] - b.span[0]);
  let at = 0;
  for (const claim of placed) {
    const [start, end] = claim.span;
    if (start < at || end > text.length) continue;
    write(answer, text.slice(at, start));
    const support = claim.support === null ? WORDS[claim.outcome] : shortDigits(claim.support);
    const mark = element("span", { class: `claim ${claim.outcome}`, role: "button", tabindex: "0", "aria-pressed": "false" });
    write(mark, text.slice(start, end)).append(element("sup", { dir: "ltr" }, support));
    answer.append(mark);
    marks.set(claim, [mark]);
    at = end;
  }
  write(answer, text.slice(at));
  return marks;
}

function explain(about, claim, one, threshold) {
  about.hidden = false;
  about.className = `about ${claim.outcome}`;
  about.replaceChildren();
  const words = { pass: "Supported", fail: "Not supported", invalid: "No usable answer", error: "No answer" };
  about.append(element("b", {}, words[claim.outcome] ?? WORDS[claim.outcome]));
  if (claim.support !== null) {
    about.append(` – support ${shortDigits(claim.support)}`);
    if (threshold !== null) about.append(`, needed is more than ${threshold}`);
    about.append(meter(claim.support, threshold));
  }
  if (claim.why) about.append(isolated("div", claim.why));
  if (claim.evidence) {
    const { id } = documentAt(one.documents[claim.evidence.document]);
    about.append(element("div", {}, "Best evidence: ", isolated("bdi", id ?? `document ${claim.evidence.document + 1}`)));
  }
}

function meter(support, threshold) {
  const made = element("span", { class: "meter", "aria-hidden": "true" }, element("i"));
  made.style.display = "block";
  made.firstChild.style.width = `${support * 100}%`;
  if (threshold !== null) {
    const border = element("u");
    border.style.left = `${threshold * 100}%`;
    made.append(border);
  }
  return made;
}

function documentCard(found, place) {
  const text = found.text ?? "";
  const shown = element("div", { class: "text", dir: "auto", tabindex: "0", role: "region", "aria-label": `document ${place + 1}` });
  const header = element("header", {}, isolated("b", found.id ?? `document ${place + 1}`),
    found.title ? isolated("span", found.title, { class: "quiet" }) : null);
  const made = element("article", { class: "document" }, header, shown);
  const all = element("button", { type: "button", hidden: "" });
  made.append(all);
  let marked = null;
  const draw = (near) => {
    const span = marked?.evidence.span ?? null;
    // A long document is shown around its evidence: a browser lays out a megabyte slowly.
    const from = near && span && text.length > NEAR ? Math.max(0, Math.min(span[0] - NEAR / 4, text.length - NEAR)) : 0;
    const to = near ? Math.min(text.length, from + NEAR) : text.length;
    shown.replaceChildren();
    if (from > 0) shown.append("… ");
    if (span) {
      const start = Math.max(from, Math.min(span[0], to));
      const end = Math.max(start, Math.min(span[1], to));
      write(shown, text.slice(from, start));
      shown.append(write(element("mark", { class: "evidence" }), text.slice(start, end)));
      write(shown, text.slice(end, to));
    } else {
      write(shown, text.slice(from, to));
    }
    if (to < text.length) shown.append(" …");
    if (!text) shown.append(element("span", { class: "quiet" }, "This document has no text."));
    all.hidden = to - from >= text.length;
    all.textContent = `Show all ${counted(text.length, "character")}`;
    const mark = shown.querySelector(".evidence");
    if (mark) requestAnimationFrame(() => { shown.scrollTop = Math.max(0, mark.offsetTop - 40); });
  };
  all.addEventListener("click", () => draw(false));
  const mark = (claim) => {
    marked = claim;
    made.className = claim ? `document best ${claim.outcome}` : "document";
    draw(true);
  };
  draw(true);
  return { made, mark };
}

function verdicts(one) {
  const rows = Object.entries(one.verdicts).map(([name, verdict]) => {
    const score = verdict.score === null ? "" : `, ${shortDigits(verdict.score)}`;
    const said = verdict.claims.length ? verdict.feedback.split("\n")[0] : verdict.feedback;
    const earlier = before[name]?.[one.id];
    return element("div", { class: `verdict ${verdict.outcome}` },
      element("span", { class: `outcome ${verdict.outcome}` }, WORDS[verdict.outcome]), " ",
      isolated("b", name), `${score}${earlier ? `, in the baseline ${WORDS[earlier]}` : ""}. `, isolated("bdi", said));
  });
  return [element("h4", {}, "Verdicts"), element("div", { class: "verdicts" }, ...rows)];
}

function facts(one) {
  const said = [["case", one.id], ["slice", one.slice]];
  if (one.label !== null) said.push(["a person said", one.label ? "supported" : "not supported"]);
  if (one.date) said.push(["date", one.date]);
  for (const [key, value] of Object.entries(one.metadata)) {
    said.push([key, typeof value === "string" ? value : JSON.stringify(value)]);
  }
  const made = element("p", { class: "facts" });
  said.forEach(([key, value], i) => made.append(i ? " · " : "", isolated("bdi", key), ": ", isolated("bdi", value)));
  return made;
}

function begin() {
  const slices = [...new Set(cases.map((one) => one.slice))].sort();
  for (const name of slices) $("slice").append(write(element("option", { value: name }), name));
  const evaluators = [...new Set(cases.flatMap((one) => Object.keys(one.verdicts)))].sort();
  for (const name of evaluators) $("evaluator").append(write(element("option", { value: name }), name));
  $("evaluator").parentElement.hidden = evaluators.length < 2;
  $("slice").parentElement.hidden = slices.length < 2;
  for (const outcome of TROUBLE) {
    $("outcomes").append(element("label", { class: outcome },
      element("input", { type: "checkbox", value: outcome }), WORDS[outcome], element("b")));
  }
  $("tools").hidden = false;
  let due = 0;
  $("search").addEventListener("input", () => { clearTimeout(due); due = setTimeout(refresh, 80); });
  $("tools").addEventListener("change", (event) => { if (event.target.id !== "search") refresh(); });
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("reset").addEventListener("click", reset);
  $("keys").addEventListener("click", () => {
    $("help").hidden = !$("help").hidden;
    $("keys").setAttribute("aria-expanded", String(!$("help").hidden));
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".case-link");
    if (!link) return;
    event.preventDefault();
    show(link.dataset.case);
  });
  addEventListener("hashchange", () => { recall(); refresh(); });
  addEventListener("scroll", () => {
    if (seen.shown < seen.cases.length && $("list").getBoundingClientRect().bottom < innerHeight * 2) more();
  }, { passive: true });
  addEventListener("beforeprint", print);
  theme();
  recall();
  refresh();
}

function print() {
  if (seen.shown < MOST_PRINTED) more(MOST_PRINTED - seen.shown);
  for (const [i, made] of Array.from($("list").children).entries()) {
    if (i >= MOST_PRINTED) break;
    fill(made, seen.cases[i]);
    made.open = true;
  }
}

function theme() {
  const button = $("theme");
  const names = { "light dark": "Auto", light: "Light", dark: "Dark" };
  const order = Object.keys(names);
  let now = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    now = (now + 1) % order.length;
    document.documentElement.style.colorScheme = order[now];
    button.querySelector("span").textContent = names[order[now]];
  });
}

begin();
