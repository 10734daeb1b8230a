"use strict";
// The list of cases: what is shown of them, in which order, and which one the reader is at.

const WORDS = {
  fail: "fail", invalid: "invalid", error: "error", not_checkable: "not checkable", pass: "pass",
};
const TROUBLE = Object.keys(WORDS);
const PAGE = 100;
const MOST_PRINTED = 200;

const $ = (id) => document.getElementById(id);
const lines = (id) => $(id).textContent.split("\n").filter((line) => line.trim());
const documents = lines("documents-data");
const cases = lines("cases-data").map((line) => JSON.parse(line)).sort((a, b) => a.place - b.place);
const before = JSON.parse($("baseline-data").textContent);
const seen = { cases: [], shown: 0, at: null };

// What a browser does not show, or what turns the text around it.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/u;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

// Text from outside is only ever put in as text.
function write(parent, text) {
  const found = ODD.test(text) ? text.split(new RegExp(`(${ODD.source})`, "u")) : [text];
  found.forEach((part, i) => {
    if (i % 2 === 0) return parent.append(part);
    const code = part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parent.append(element("span", { class: "odd" }, `U+${code}`));
  });
  return parent;
}

const counted = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
const isolated = (name, text, attributes = {}) => write(element(name, { dir: "auto", ...attributes }), text);

function state() {
  const checked = document.querySelectorAll("#outcomes input:checked");
  return {
    words: $("search").value.toLowerCase().split(/\s+/).filter(Boolean),
    outcomes: new Set(Array.from(checked, (box) => box.value)),
    slice: $("slice").value,
    evaluator: $("evaluator").value,
    order: $("order").value,
  };
}

function outcomeOf(one, evaluator) {
  return evaluator ? one.verdicts[evaluator]?.outcome : one.outcome;
}

function scoreOf(one, evaluator) {
  if (evaluator) return one.verdicts[evaluator]?.score ?? null;
  const worst = Object.values(one.verdicts).find((verdict) => verdict.claims.length);
  return (worst ?? Object.values(one.verdicts)[0])?.score ?? null;
}

const documentAt = (place) => {
  if (typeof documents[place] === "string") documents[place] = JSON.parse(documents[place]);
  return documents[place];
};

const lowered = new Map();
function haystack(one) {
  one.haystack ??= [one.id, one.slice, one.question, one.answer,
    ...Object.values(one.verdicts).map((verdict) => verdict.feedback)].join("\n").toLowerCase();
  return one.haystack;
}

function inDocument(place, word) {
  if (!lowered.has(place)) {
    const { id, title, text } = documentAt(place);
    lowered.set(place, [id, title, text].join("\n").toLowerCase());
  }
  return lowered.get(place).includes(word);
}

function matching({ words, slice, evaluator }) {
  // A document that many cases share is searched once.
  const found = words.map((word) => new Map());
  const contains = (place, i) => {
    if (!found[i].has(place)) found[i].set(place, inDocument(place, words[i]));
    return found[i].get(place);
  };
  return cases.filter((one) => (!slice || one.slice === slice) && (!evaluator || one.verdicts[evaluator])
    && words.every((word, i) => haystack(one).includes(word) || one.documents.some((place) => contains(place, i))));
}

function thresholdOf(one) {
  return Object.values(one.verdicts).find((verdict) => verdict.threshold !== null)?.threshold ?? 0.5;
}

function arrange(found, { order, evaluator }) {
  const last = (value) => value ?? Infinity;
  const keys = {
    file: (one) => one.place,
    trouble: (one) => TROUBLE.indexOf(outcomeOf(one, evaluator)),
    support: (one) => last(scoreOf(one, evaluator)),
    border: (one) => {
      const score = scoreOf(one, evaluator);
      return score === null ? Infinity : Math.abs(score - thresholdOf(one));
    },
  };
  const key = new Map(found.map((one) => [one, keys[order](one)]));
  return found.sort((a, b) => (key.get(a) === key.get(b) ? a.place - b.place : key.get(a) - key.get(b)));
}

function refresh() {
  const asked = state();
  const alike = matching(asked);
  const counts = Object.fromEntries(TROUBLE.map((outcome) => [outcome, 0]));
  for (const one of alike) counts[outcomeOf(one, asked.evaluator)] += 1;
  for (const box of document.querySelectorAll("#outcomes input")) {
    box.parentElement.querySelector("b").textContent = counts[box.value].toLocaleString("en");
  }
  const chosen = asked.outcomes.size ? alike.filter((one) => asked.outcomes.has(outcomeOf(one, asked.evaluator))) : alike;
  seen.cases = arrange(chosen, asked);
  seen.shown = 0;
  seen.at = null;
  $("list").replaceChildren();
  more();
  $("nothing").hidden = seen.cases.length > 0;
  const all = counted(cases.length, "case");
  const count = seen.cases.length.toLocaleString("en");
  $("count").textContent = seen.cases.length === cases.length ? all : `${count} of ${all}`;
  remember(asked);
}

function more(least = PAGE) {
  const next = seen.cases.slice(seen.shown, seen.shown + least);
  const { evaluator } = state();
  $("list").append(...next.map((one) => row(one, evaluator)));
  seen.shown += next.length;
}

function row(one, evaluator) {
  const outcome = outcomeOf(one, evaluator);
  // The support did not decide where retrieval broke.
  const score = !evaluator && one.broken === "retrieval" ? null : scoreOf(one, evaluator);
  const earlier = Object.values(before).map((changes) => changes[one.id]).find(Boolean);
  const others = evaluator ? [] : besides(one);
  const summary = element("summary", { class: outcome },
    element("span", { class: "outcome" }, WORDS[outcome],
      one.broken && outcome === "fail" ? isolated("span", `${one.broken} broke`, { class: "moved" })
        : others.length ? isolated("span", others.join(", "), { class: "others moved" }) : null,
      earlier ? element("span", { class: "moved" }, `was ${WORDS[earlier]}`) : null),
    isolated("span", one.id, { class: "id", title: one.id }),
    isolated("span", one.question.slice(0, 300) || one.answer.slice(0, 300), { class: "question" }),
    isolated("span", one.slice, { class: "slice" }),
    element("span", { class: "score", title: "support" }, score === null ? "" : score.toFixed(3)));
  const made = element("details", { class: `case ${outcome}`, "data-place": one.place }, summary);
  made.addEventListener("toggle", () => { if (made.open) fill(made, one); });
  return made;
}

// Who else failed the case, beside the evaluator that looks at its claims.
function besides(one) {
  const [first] = Object.entries(one.verdicts).find(([, verdict]) => verdict.claims.length) ?? Object.entries(one.verdicts)[0];
  return Object.entries(one.verdicts)
    .filter(([name, verdict]) => name !== first && ["fail", "invalid", "error"].includes(verdict.outcome))
    .map(([name]) => name);
}

function fill(made, one) {
  if (!made.querySelector(".body")) made.append(body(one));
}

function remember({ words, outcomes, slice, evaluator, order }) {
  const kept = new URLSearchParams();
  if (words.length) kept.set("q", $("search").value);
  if (outcomes.size) kept.set("outcome", [...outcomes].join(","));
  if (slice) kept.set("slice", slice);
  if (evaluator) kept.set("evaluator", evaluator);
  if (order !== "trouble") kept.set("order", order);
  try {
    history.replaceState(null, "", kept.size ? `#${kept}` : location.pathname + location.search);
  } catch { /* A page in a frame without an address of its own cannot keep one. */ }
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  $("search").value = kept.get("q") ?? "";
  for (const box of document.querySelectorAll("#outcomes input")) {
    box.checked = (kept.get("outcome") ?? "").split(",").includes(box.value);
  }
  for (const name of ["slice", "evaluator", "order"]) {
    $(name).value = kept.get(name) ?? (name === "order" ? "trouble" : "");
    if ($(name).selectedIndex < 0) $(name).selectedIndex = 0;
  }
}

function reset() {
  $("search").value = "";
  for (const box of document.querySelectorAll("#outcomes input")) box.checked = false;
  $("slice").value = "";
  $("evaluator").value = "";
  refresh();
}

function show(id) {
  reset();
  const place = seen.cases.findIndex((one) => one.id === id);
  if (place >= 0) go(place, true);
}

function go(place, open = false) {
  if (place < 0 || place >= seen.cases.length) return;
  if (place >= seen.shown) more(place - seen.shown + PAGE);
  const made = $("list").children[place];
  if (open) made.open = true;
  seen.at = place;
  made.querySelector("summary").focus({ preventScroll: true });
  made.scrollIntoView({ block: open ? "start" : "nearest" });
}

function here() {
  const focused = document.activeElement?.closest?.(".case");
  return focused ? Array.prototype.indexOf.call($("list").children, focused) : seen.at;
}

function claimBy(step) {
  const made = $("list").children[here() ?? -1];
  const claims = Array.from(made?.querySelectorAll(".claim") ?? []);
  if (!made?.open || !claims.length) return;
  const now = claims.findIndex((claim) => claim.getAttribute("aria-pressed") === "true");
  const next = claims[(now + step + claims.length) % claims.length];
  next.click();
  next.focus();
}

function escape() {
  const made = document.activeElement?.closest?.(".case[open]");
  if (made) {
    made.open = false;
    made.querySelector("summary").focus();
  } else if ($("search").value) {
    $("search").value = "";
    refresh();
  } else {
    document.activeElement?.blur();
  }
}

const KEYS = {
  "/": () => { $("search").focus(); $("search").select(); },
  j: () => go((here() ?? -1) + 1),
  k: () => go((here() ?? seen.cases.length) - 1),
  n: () => claimBy(1),
  p: () => claimBy(-1),
  "?": () => $("keys").click(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return escape();
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") {
    if (event.key === "Enter" && event.target.id === "search") { event.preventDefault(); go(0); }
    return;
  }
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
}
