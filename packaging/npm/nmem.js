#!/usr/bin/env node
// Starts the program of this platform. Hooks do not go through here: `nmem install` writes the program's own path.
"use strict"
const { spawnSync } = require("node:child_process")

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
// Ctrl-C reaches both: the program decides what it means.
process.on("SIGINT", () => {})
const done = spawnSync(program, process.argv.slice(2), { stdio: "inherit" })
if (done.error) {
  console.error(`nmem: cannot start ${program}: ${done.error.message}`)
  process.exit(1)
}
if (done.signal) process.kill(process.pid, done.signal)
process.exit(done.status ?? 1)
