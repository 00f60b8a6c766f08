// Python in a worker: the page stays alive, and a kernel that does not end can be stopped with it.
const send = (message) => postMessage(message);
const LIBRARIES = "/lib/python3.14/site-packages";
let python, receive;

let asked; // the message of a view that is answered now
self.tell = (text) => send({ kind: "widget", message: JSON.parse(text), token: asked });

// What is asked for while Python answers waits: one thing after the other.
let before = Promise.resolve();
self.onmessage = ({ data }) => {
  before = before.then(() => answers[data.kind](data)).catch((error) =>
    send({ kind: "failed", key: data.key, text: String(error.message ?? error).trim() }));
};

const answers = {
  // Pyodide and the packs come side by side; of the packs the page hears how far they are.
  async start({ lite, kernel }) {
    const pyodide = import(new URL("static/pyodide/pyodide.mjs", lite));
    const [libraries, gemmlab] = packs(lite), text = fetch(kernel).then((got) => got.text());
    python = await (await pyodide).loadPyodide({ indexURL: new URL("static/pyodide/", lite).href });
    lay(await libraries);
    await python.runPythonAsync("import matplotlib.backends.backend_agg, matplotlib.figure"); // while the other comes
    lay(await gemmlab);
    send({ kind: "progress", told: "Python starts" });
    await python.runPythonAsync(await text);
    receive = python.globals.get("receive");
    send({ kind: "started" });
  },

  async show({ key, expression, moved }) {
    const model = await python.globals.get("show").callPromising(expression);
    if (moved) await python.globals.get("take_over").callPromising(model, ...moved);
    send({ kind: "shown", key, model });
  },

  async widget({ comm, data, token }) {
    asked = token;
    try {
      await receive.callPromising(comm, JSON.stringify(data));
    } finally {
      asked = undefined;
      send({ kind: "idle", token });
    }
  },
};

// The two packs, one after the other; each is unpacked as it comes.
function packs(lite) {
  const answers = ["libraries", "gemmlab"].map((name) => fetch(new URL(`page/${name}.bin`, lite)));
  let bytes = 0;
  async function read(answer, all) {
    if (!answer.ok) throw new Error(`${answer.url}: ${answer.status}`);
    const counted = new TransformStream({
      transform(part, next) {
        bytes += part.length;
        send({ kind: "progress", told: "Python is fetched", bytes, all });
        next.enqueue(part);
      },
    });
    const unpacked = answer.body.pipeThrough(counted).pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(unpacked).arrayBuffer());
  }
  const told = Promise.all(answers).then((all) => all.reduce((sum, a) => sum + Number(a.headers.get("Content-Length")), 0));
  const first = told.then(async (all) => read(await answers[0], all));
  return [first, first.then(async () => read(await answers[1], await told))];
}

// Lay the files of a tar where Python looks for libraries.
function lay(tar) {
  for (const [name, bytes] of entries(tar)) {
    const path = `${LIBRARIES}/${name}`;
    python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    python.FS.writeFile(path, bytes, { canOwn: true });
  }
}

// The files of a tar: blocks of 512 bytes, a header and then what it tells of.
// Source: POSIX.1-1988, ustar: name at 0, size in octal digits at 124, what goes before the name at 345.
function* entries(tar) {
  const text = (from, length) => new TextDecoder().decode(tar.subarray(from, from + length)).split("\0", 1)[0];
  for (let at = 0, size; tar[at]; at += 512 * (1 + Math.ceil(size / 512))) {
    size = parseInt(text(at + 124, 12), 8);
    const folder = text(at + 345, 155), name = text(at, 100);
    yield [folder ? `${folder}/${name}` : name, tar.subarray(at + 512, at + 512 + size)];
  }
}
