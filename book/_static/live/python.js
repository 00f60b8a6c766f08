// Python beside a page: a worker, and Jupyter's own views of the widgets that live in it.
const here = new URL(".", import.meta.url);
const up = document.documentElement.lang === "en" ? "" : "../"; // other languages have a folder in the site
const lite = new URL(`${up}../../lite/`, here);

export class Python {
  #worker = new Worker(new URL("worker.js", here), { type: "module" });
  #comms = new Map();
  #idle = new Map(); // token of a message -> what the view does once it is dealt with
  #shown = new Map(); // key of an explorer -> how its promise ends
  #sent = 0;
  #manager;

  constructor({ progress, idle }) {
    this.busy = idle;
    this.started = new Promise((done, failed) => {
      const kinds = {
        progress,
        started: () => done((this.runs = true)),
        failed: ({ key, text }) => (this.#shown.get(key)?.[1] ?? failed)(new Error(text)),
        shown: ({ key, model }) => this.#shown.get(key)[0](model),
        widget: (data) => this.#hear(data),
        idle: ({ token }) => {
          this.#idle.get(token)?.iopub?.status?.({ content: { execution_state: "idle" }, parent_header: { msg_id: token } });
          this.#idle.delete(token);
          if (!this.#idle.size) this.busy(false);
        },
      };
      this.#worker.onmessage = ({ data }) => kinds[data.kind](data);
      this.#worker.onerror = ({ message }) => failed(new Error(message ?? "no worker can be started"));
      this.#worker.postMessage({ kind: "start", lite: lite.href, kernel: new URL("kernel.py", here).href });
    });
    this.#manager = views();
  }

  // An explorer: a function that shows it in an element.
  async show(expression, moved) {
    const key = `explorer ${this.#sent++}`;
    const model = new Promise((...ends) => this.#shown.set(key, ends));
    await this.#manager; // messages of its widgets come before the answer
    this.#worker.postMessage({ kind: "show", key, expression, moved });
    const made = await (await this.#manager).get_model(await model);
    return async (box) => {
      const manager = await this.#manager;
      await manager.display_view(manager.create_view(made), box);
    };
  }

  stop() {
    this.#worker.terminate();
  }

  async #hear({ message, token }) {
    const { kind, comm, data, metadata, target } = message;
    const told = { content: { comm_id: comm, data }, metadata: metadata ?? {}, buffers: [], parent_header: { msg_id: token } };
    const manager = await this.#manager;
    if (kind === "comm_open") {
      const line = new Line(comm, target, (...sent) => this.#send(comm, ...sent));
      line.open = manager.handle_comm_open(line, told);
      this.#comms.set(comm, line);
    } else if (kind === "comm_msg") {
      const line = this.#comms.get(comm);
      await line.open; // its model is there
      line.heard(told);
    }
  }

  #send(comm, data, callbacks) {
    const token = `view ${this.#sent++}`;
    if (!this.#idle.size) this.busy(true);
    this.#idle.set(token, callbacks);
    this.#worker.postMessage({ kind: "widget", comm, data, token });
    return token;
  }
}

// A comm, as Jupyter's views want one.
class Line {
  constructor(id, target, send) {
    Object.assign(this, { comm_id: id, target_name: target, send });
  }
  on_msg(heard) { this.heard = heard; }
  on_close() {}
  close() {}
}

let manager;
function views() {
  return (manager ??= (async () => {
    const script = (name) => new Promise((done, failed) => {
      const element = Object.assign(document.createElement("script"), { src: new URL(`page/${name}`, lite).href, onload: done });
      element.onerror = () => failed(new Error(`${name} is not in this site`));
      document.head.append(element);
    });
    await script("require.js");
    await script("libembed-amd.js");
    window.requirejs.config({ baseUrl: new URL("page/", lite).href });
    const { HTMLManager } = await new Promise((...ends) => window.requirejs(["@jupyter-widgets/html-manager"], ...ends));
    // Views ask MathJax 2 to typeset their labels; the page has a later one, and no label a formula.
    if (window.MathJax) window.MathJax.Hub ??= { Queue() {} };
    return new HTMLManager({ loader: (name) => Promise.reject(new Error(`no widgets of ${name} here`)) });
  })());
}
