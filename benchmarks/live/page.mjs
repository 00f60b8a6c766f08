// Runs a program of Python in Pyodide, without a browser:
//
//     node --experimental-wasm-jspi benchmarks/live/page.mjs PYODIDE COURSE MODULE WORDS...
//
// PYODIDE is the folder static/pyodide of a built live site, COURSE the folder of the course, whose
// gemmlab is taken as it lies there; MODULE is run as by `python -m`, in COURSE.

import path from "node:path";

const [pyodide, course, module, ...words] = process.argv.slice(2);
const folder = path.resolve(pyodide) + "/";
const { loadPyodide } = await import(folder + "pyodide.mjs");
globalThis.cpuSeconds = () => {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
};
const packages = ["numpy", "matplotlib", "ipython", "comm", "ipywidgets"];
const python = await loadPyodide({ indexURL: folder, packages, env: { HOME: "/home/pyodide" } });
// This machine's files are below /host there, so that a path in WORDS is that with /host before it.
python.FS.mkdirTree("/host");
python.FS.mount(python.FS.filesystems.NODEFS, { root: "/" }, "/host");
python.globals.set("course", "/host" + path.resolve(course));
python.globals.set("module", module);
python.globals.set("words", python.toPy(words));
let status = 0;
try {
  await python.runPythonAsync(`
import os, runpy, sys
os.chdir(course)
os.environ["MPLBACKEND"] = "agg"
sys.dont_write_bytecode = True
sys.path.insert(0, course)
sys.argv = [module, *words]
runpy.run_module(module, run_name="__main__", alter_sys=False)
`);
} catch (error) {
  console.error(String(error));
  status = 1;
}
process.exit(status);
