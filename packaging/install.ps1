# Installs nmem for this user: irm https://github.com/nmem-dev/nmem/releases/latest/download/install.ps1 | iex
#   NMEM_BIN       where the program goes [default: ~\.nmem\bin, which is added to the user's PATH]
#   NMEM_DOWNLOAD  where the archives are [default: the newest release]
# To remove it: nmem uninstall, then delete nmem.exe and take its folder off PATH. The database stays.
& {
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue'
    $from = if ($env:NMEM_DOWNLOAD) { $env:NMEM_DOWNLOAD } else { 'https://github.com/nmem-dev/nmem/releases/latest/download' }
    $bin = if ($env:NMEM_BIN) { $env:NMEM_BIN } else { Join-Path $HOME '.nmem\bin' }
    # Windows on ARM runs the x64 program.
    $name = 'nmem-x86_64-pc-windows-msvc'
    $work = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
    New-Item -ItemType Directory $work | Out-Null
    try {
        Invoke-WebRequest -UseBasicParsing "$from/$name.zip" -OutFile "$work\$name.zip"
        Invoke-WebRequest -UseBasicParsing "$from/SHA256SUMS" -OutFile "$work\SHA256SUMS"
        $line = Get-Content "$work\SHA256SUMS" | Where-Object { $_ -like "*  $name.zip" }
        if (-not $line) { throw "SHA256SUMS does not name $name.zip" }
        $sum = (Get-FileHash "$work\$name.zip" -Algorithm SHA256).Hash
        if ($sum -ne $line.Split(' ')[0]) { throw "$name.zip is not what SHA256SUMS says; nothing was installed" }
        Expand-Archive "$work\$name.zip" $work
        New-Item -ItemType Directory -Force $bin | Out-Null
        # A program that runs cannot be overwritten, but it can be renamed.
        if (Test-Path "$bin\nmem.exe") { Move-Item -Force "$bin\nmem.exe" "$bin\nmem.old.exe" }
        Copy-Item "$work\$name\nmem.exe" "$bin\nmem.exe"
        Remove-Item "$bin\nmem.old.exe" -ErrorAction SilentlyContinue
        $path = [Environment]::GetEnvironmentVariable('Path', 'User')
        if (-not $env:NMEM_BIN -and ($path -split ';') -notcontains $bin) {
            [Environment]::SetEnvironmentVariable('Path', "$bin;$path", 'User')
            $env:Path = "$bin;$env:Path"
            Write-Output "$bin was added to your PATH; terminals that are open now do not know it yet"
        }
        Write-Output "Installed $(& "$bin\nmem.exe" --version) in $bin"
        Write-Output 'Next: nmem demo, then nmem install --found --dry-run'
    } finally {
        Remove-Item -Recurse -Force $work
    }
}
