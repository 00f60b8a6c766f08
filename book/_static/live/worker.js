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
  // The pack and Pyodide come side by side; of the pack the page hears how far it is.
  async start({ lite, kernel }) {
    const pyodide = import(new URL("static/pyodide/pyodide.mjs", lite));
    const [pack, text] = [fetched(new URL("page/pack.bin", lite)), fetch(kernel).then((got) => got.text())];
    python = await (await pyodide).loadPyodide({ indexURL: new URL("static/pyodide/", lite).href });
    const packed = await pack;
    send({ kind: "progress", told: "Python starts" });
    for (const [name, bytes] of entries(packed)) {
      const path = `${LIBRARIES}/${name}`;
      python.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
      python.FS.writeFile(path, bytes, { canOwn: true });
    }
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

// The bytes of a file in gzip. It is unpacked as it comes.
async function fetched(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  const all = Number(answer.headers.get("Content-Length"));
  let bytes = 0;
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
