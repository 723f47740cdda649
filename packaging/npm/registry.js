// A registry of the packages in a folder, for packaging/check: prints its port. Packages that are not there do not exist.
"use strict"
const { createHash } = require("node:crypto")
const { execFileSync } = require("node:child_process")
const fs = require("node:fs")
const http = require("node:http")
const path = require("node:path")

const folder = process.argv[2]
const packages = new Map()
for (const file of fs.readdirSync(folder).filter((name) => name.endsWith(".tgz"))) {
  const text = execFileSync("tar", ["-xzOf", path.join(folder, file), "package/package.json"])
  packages.set(JSON.parse(text).name, { file, manifest: JSON.parse(text) })
}

const server = http.createServer((request, response) => {
  const name = decodeURIComponent(request.url.slice(1))
  if (name.endsWith(".tgz") && !name.includes("/")) return response.end(fs.readFileSync(path.join(folder, name)))
  const found = packages.get(name)
  if (!found) {
    response.statusCode = 404
    return response.end("{}")
  }
  const { file, manifest } = found
  const integrity = "sha512-" + createHash("sha512").update(fs.readFileSync(path.join(folder, file))).digest("base64")
  const dist = { tarball: `http://127.0.0.1:${server.address().port}/${file}`, integrity }
  const versions = { [manifest.version]: { ...manifest, dist } }
  response.end(JSON.stringify({ name, "dist-tags": { latest: manifest.version }, versions }))
})
server.listen(0, "127.0.0.1", () => console.log(server.address().port))
