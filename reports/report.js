"use strict";
(() => {
  const PAGE = 100;
  const data = document.getElementById("run-data");
  const body = document.querySelector("#runs tbody");
  if (data && body) {
    const runs = JSON.parse(data.textContent);
    const text = document.getElementById("filter");
    const outcome = document.getElementById("outcome");
    const status = document.getElementById("run-status");
    const more = document.getElementById("more");
    const labels = ["Outcome", "Faults", "Anomalies", "Seconds", "Note"];
    const haystack = runs.map((run) => run.join(" ").toLowerCase());
    let shown = PAGE;
    const cell = (row, run, i) => {
      const td = row.insertCell();
      td.dataset.label = labels[i];
      if (i === 0) {
        const badge = document.createElement("span");
        badge.className = "badge " + run[0];
        badge.textContent = run[0];
        td.append(badge);
      } else {
        td.textContent = run[i];
        if (i === 3) td.className = "number";
      }
    };
    const draw = () => {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [];
      for (let i = 0; i < runs.length; i++) {
        if (outcome.value && runs[i][0] !== outcome.value) continue;
        if (words.every((word) => haystack[i].includes(word))) found.push(runs[i]);
      }
      body.replaceChildren();
      for (const run of found.slice(0, shown)) {
        const row = body.insertRow();
        for (let i = 0; i < labels.length; i++) cell(row, run, i);
      }
      const visible = Math.min(shown, found.length);
      status.textContent = `${visible} of ${found.length} matching runs shown, ${runs.length} runs in all`;
      more.hidden = visible === found.length;
    };
    const restart = () => { shown = PAGE; draw(); };
    text.addEventListener("input", restart);
    outcome.addEventListener("change", restart);
    more.addEventListener("click", () => { shown += PAGE; draw(); });
    document.getElementById("controls").hidden = false;
    draw();
  }
  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copy).textContent;
      const done = await navigator.clipboard.writeText(text).then(() => true, () => false);
      button.textContent = done ? "Copied" : "Select it and copy";
    });
  }
})();
