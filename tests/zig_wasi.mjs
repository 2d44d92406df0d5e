// usage: node zig_wasi.mjs PROGRAM FOLDER ARGUMENT...
// Runs a program for WASI, which sees FOLDER and nothing else; its exit status is left in FOLDER/status.
import { readFile } from 'node:fs/promises';
import { writeFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [program, folder, ...rest] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: [program, ...rest], env: { TMPDIR: '.' }, preopens: { '.': folder }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(program));
const status = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
writeFileSync(`${folder}/status`, `${status}\n`);
process.exit(status);
