// Run Python of WebAssembly on this machine: node pack.mjs PYODIDE SCRIPT FOLDER
// The script finds FOLDER, which it may write to, as /packing, in the file system of that Python.
import { resolve } from "node:path";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, script, folder] = process.argv.slice(2).map((given) => resolve(given));
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${pyodide}/` });
python.FS.mkdir("/packing");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/packing");
python.runPython(readFileSync(script, "utf-8"));
