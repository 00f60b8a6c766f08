// The rings of the map: what a reader guessed and solved in this browser's notebooks, beside the pages.
//
// The live site keeps files in the browser, and among them `progress.jsonl` of a folder of notebooks
// (gemmlab/course/progress.py): a line for each event. Nothing is fetched and nothing is written.
const DRIVE = "JupyterLite Storage", FILES = "files", NAME = /(^|\/)progress\.jsonl$/;
const stops = document.querySelectorAll(".gemmlab-map .stop[data-tasks]");

const answer = (request) =>
  new Promise((found, failed) => {
    request.onsuccess = () => found(request.result);
    request.onerror = () => failed(request.error);
  });

const text = ({ content, format }) =>
  format === "base64"
    ? new TextDecoder().decode(Uint8Array.from(atob(content), (c) => c.charCodeAt(0)))
    : String(content);

async function kept() {
  const databases = (await indexedDB.databases?.()) ?? [];
  const texts = [];
  for (const { name } of databases.filter((one) => one.name.startsWith(DRIVE))) {
    const drive = await answer(indexedDB.open(name));
    if (drive.objectStoreNames.contains(FILES)) {
      const files = drive.transaction(FILES).objectStore(FILES);
      const names = (await answer(files.getAllKeys())).filter((key) => NAME.test(key));
      for (const key of names) texts.push(text(await answer(files.get(key))));
    }
    drive.close();
  }
  return texts.join("\n");
}

function done(lines) {
  const keys = new Set();
  for (const line of lines.split("\n").filter(Boolean)) {
    try {
      const { kind, key, right } = JSON.parse(line);
      if (kind === "guess" || (kind === "exercise" && right)) keys.add(String(key));
    } catch {
      // A line that is damaged is passed over, as the notebooks do.
    }
  }
  return [...keys];
}

async function show() {
  const keys = done(await kept());
  for (const stop of stops) {
    const { chapter, tasks } = stop.dataset;
    const some = keys.filter((key) => key.startsWith(`${chapter}.`)).length;
    if (!some) continue;
    const share = Math.min(1, some / Number(tasks));
    stop.querySelector(".share").setAttribute("stroke-dasharray", `${100 * share} 100`);
    stop.classList.toggle("full", share === 1);
    const told = Object.assign(document.createElement("small"), { className: "told" });
    told.textContent = ` ${some} / ${tasks}`;
    stop.parentElement.querySelector("p").append(told);
  }
}

if (stops.length) show().catch((error) => console.warn(`The map shows no progress: ${error}`));
