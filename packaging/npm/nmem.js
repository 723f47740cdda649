#!/usr/bin/env node
// Starts the program of this platform. Hooks do not go through here: `nmem install` writes the program's own path.
"use strict"
const { spawn } = require("node:child_process")

const name = `@nmem/${process.platform}-${process.arch}`
const file = process.platform === "win32" ? "nmem.exe" : "nmem"
let program
try {
  program = require.resolve(`${name}/bin/${file}`)
} catch {
  console.error(`nmem: there is no program for ${process.platform} on ${process.arch}, or npm left ${name} out (--omit=optional)`)
  console.error("  other ways to install: https://github.com/nmem-dev/nmem#install")
  process.exit(1)
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" })
// Ctrl-C reaches both: the program decides what it means. Other signals are passed on.
process.on("SIGINT", () => {})
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
child.on("error", (error) => {
  console.error(`nmem: cannot start ${program}: ${error.message}`)
  process.exit(1)
})
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (require("node:os").constants.signals[signal] ?? 0))
})
