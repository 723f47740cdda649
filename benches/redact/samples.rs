//! Made-up secrets in realistic shapes: keys with a fixed form, and secret values in the places where people write them.
//!
//! Templates are taken from what vendors document and from the rules of gitleaks, not from the tables in `src/redact`.
//! `{A36}` means 36 random characters of a class: `A` letters and digits, `a` lower case and digits, `X` upper case
//! and digits, `H` hexadecimal, `U` URL-safe base64, `B` base64, `D` digits, `L` letters, `Q` base32. Secrets are put
//! together from parts, so that no scanner of repositories takes this file for a leak.

/// A text, the secret in it that must not be stored, and the group and rule that it belongs to.
pub struct Sample {
    pub group: &'static str,
    pub rule: String,
    pub text: String,
    pub secret: String,
}

/// Keys that are recognized by their form alone: name and template.
pub const KEYS: &[(&str, &str)] = &[
    ("1password", "A3-{X6}-{X11}-{X5}-{X5}-{X5}"),
    ("1password-service", "ops_eyJ{B250}"),
    ("adobe", "p8e-{a32}"),
    ("age", "AGE-SECRET-KEY-1{X58}"),
    ("airtable", "pat{A14}.{H64}"),
    ("alibaba", "LTAI{A20}"),
    ("anthropic", "sk-ant-api03-{U93}AA"),
    ("apify", "apify_api_{A36}"),
    ("artifactory", "AKCp{A69}"),
    ("artifactory-reference", "cmVmd{A59}"),
    ("asana", "1/{D16}:{H32}"),
    ("atlassian", "ATATT3{U186}"),
    ("authress", "sc_{a20}.{a5}.acc-{a20}.{a60}"),
    ("aws-a3t", "A3TX{Q16}"),
    ("aws-acca", "ACCA{Q16}"),
    ("aws-akia", "AKIA{Q16}"),
    ("aws-bedrock", "ABSK{B120}"),
    ("aws-bedrock-short", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{B80}"),
    ("axiom", "xaat-{H8}-{H4}-{H4}-{H4}-{H12}"),
    ("azure-ad", "{A3}8Q~{A34}"),
    ("bitbucket", "ATBB{A32}"),
    ("bitcoin-xprv", "xprv9{A106}"),
    ("brave", "BSA{U27}"),
    ("braintree", "access_token$production${a16}${H32}"),
    ("buildkite", "bkua_{H40}"),
    ("buildkite-agent", "bkat_{A40}"),
    ("cerebras", "csk-{a48}"),
    ("clickhouse", "4b1d{A38}"),
    ("clojars", "CLOJARS_{a60}"),
    ("cloudflare-origin", "v1.0-{H24}-{H146}"),
    ("cloudflare-token", "cfat_{U40}"),
    ("contentful", "CFPAT-{U43}"),
    ("cursor", "crsr_{H64}"),
    ("databricks", "dapi{H32}"),
    ("dbt", "dbtc_{U40}"),
    ("defined-networking", "dnkey-{A26}-{A52}"),
    ("deno", "ddp_{A36}"),
    ("digitalocean", "dop_v1_{H64}"),
    ("discord-bot", "MTc{A21}.{A6}.{U38}"),
    ("docker", "dckr_pat_{U27}"),
    ("doppler", "dp.pt.{a43}"),
    ("doppler-ct", "dp.ct.{a43}"),
    ("dropbox", "sl.{U135}"),
    ("duffel", "duffel_test_{U43}"),
    ("dynatrace", "dt0c01.{X24}.{X64}"),
    ("e2b", "e2b_{H40}"),
    ("easypost", "EZAK{A54}"),
    ("easypost-test", "EZTK{A54}"),
    ("elevenlabs", "sk_{H48}"),
    ("facebook", "{D16}|{U27}"),
    ("facebook-page", "EAAC{A120}"),
    ("fernet", "gAAAAA{U94}=="),
    ("figma", "figd_{U40}"),
    ("firecrawl", "fc-{H32}"),
    ("flutterwave", "FLWSECK_TEST-{H32}-X"),
    ("flyio", "fm2_{B120}"),
    ("flyio-1a", "fm1a_{B120}"),
    ("frameio", "fio-u-{U64}"),
    ("gcp", "AIza{U35}"),
    ("gemini", "AQ.{U50}"),
    ("github", "ghp_{A36}"),
    ("github-fine", "github_pat_{A22}_{A59}"),
    ("github-app", "v1.{H40}"),
    ("gitlab", "glpat-{U20}"),
    ("gitlab-agent", "glagent-{U50}"),
    ("gitlab-feature", "glffct-{U20}"),
    ("gitlab-feed", "glft-{U20}"),
    ("gitlab-mail", "glimt-{U25}"),
    ("gitlab-oauth", "gloas-{U64}"),
    ("gitlab-runner", "GR1348941{U20}"),
    ("google-oauth", "GOCSPX-{U28}"),
    ("google-refresh", "1//0g{U60}"),
    ("grafana", "eyJrIjoi{A90}"),
    ("grafana-cloud", "glc_{A60}"),
    ("grafana-service", "glsa_{A32}_{H8}"),
    ("groq", "gsk_{A52}"),
    ("harness", "pat.{A22}.{H24}.{A20}"),
    ("hashicorp", "{A14}.atlasv1.{U64}"),
    ("heroku", "HRKU-AA{U58}"),
    ("hubspot", "pat-na1-{H8}-{H4}-{H4}-{H4}-{H12}"),
    ("huggingface", "hf_{L34}"),
    ("huggingface-org", "api_org_{L34}"),
    ("infisical", "st.{H24}.{H32}.{H32}"),
    ("infracost", "ico-{A32}"),
    ("intra42", "s-s4t2ud-{H64}"),
    ("jina", "jina_{A60}"),
    ("jsr", "jsrp_{U40}"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{U40}.{U43}"),
    ("jwt-spaced", "eyAiYWxnIjogIkhTMjU2IiB9.eyAic3ViIjogIj{U40}.{U43}"),
    ("jwe", "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..{U16}.{U80}.{U22}"),
    ("jwe-rsa", "eyJhbGciOiJSU0EtT0FFUCJ9.{U342}.{U16}.{U80}.{U22}"),
    ("linear", "lin_api_{A40}"),
    ("lob", "live_{H35}"),
    ("macaroon", "MDAx{U120}"),
    ("mailchimp", "{H32}-us12"),
    ("mailgun", "{H32}-{H8}-{H8}"),
    ("mapbox", "sk.eyJ1Ijoi{A60}.{U22}"),
    ("maxmind", "{A6}_{A29}_mmk"),
    ("minisign", "RWRTY0Iy{B200}"),
    ("neon", "napi_{a64}"),
    ("netlify", "nfp_{A36}"),
    ("new-relic", "NRAK-{X27}"),
    ("new-relic-insert", "NRII-{U32}"),
    ("notion", "ntn_{D11}{A35}"),
    ("npm", "npm_{A36}"),
    ("nvidia", "nvapi-{U64}"),
    ("octopus", "API-{X26}"),
    ("openai", "sk-proj-{U74}T3BlbkFJ{U74}"),
    ("openshift", "sha256~{U43}"),
    ("paseto", "v4.local.{U120}"),
    ("perplexity", "pplx-{A48}"),
    ("plaid", "access-production-{H8}-{H4}-{H4}-{H4}-{H12}"),
    ("planetscale", "pscale_tkn_{U43}"),
    ("planetscale-oauth", "pscale_oauth_{U43}"),
    ("postman", "PMAK-{H24}-{H34}"),
    ("posthog", "phx_{A43}"),
    ("prefect", "pnu_{a36}"),
    ("pulumi", "pul-{H40}"),
    ("pypi", "pypi-AgEIcHlwaS5vcmc{U90}"),
    ("readme", "rdme_{a70}"),
    ("render", "rnd_{A28}"),
    ("replicate", "r8_{A37}"),
    ("rubygems", "rubygems_{H48}"),
    ("scalingo", "tk-us-{U48}"),
    ("sendgrid", "SG.{U22}.{U43}"),
    ("sendinblue", "xkeysib-{H64}-{A16}"),
    ("sentry-org", "sntrys_eyJpYXQiO{B80}LCJyZWdpb25fdXJs{B60}=_{B43}"),
    ("sentry-user", "sntryu_{H64}"),
    ("settlemint", "sm_aat_{A16}"),
    ("shippo", "shippo_test_{H40}"),
    ("shopify", "shpat_{H32}"),
    ("slack-app", "xapp-1-{X11}-{D13}-{H64}"),
    ("slack-bot", "xoxb-{D12}-{D12}-{A24}"),
    ("slack-config", "xoxe.xoxb-1-{X164}"),
    ("slack-legacy", "xoxo-{D10}-{D10}-{D10}-{H32}"),
    ("slack-user", "xoxp-{D12}-{D12}-{D12}-{H32}"),
    ("slack-workspace", "xoxr-{A30}"),
    ("sourcegraph", "sgp_{H16}_{H40}"),
    ("square", "EAAA{U40}"),
    ("square-oauth", "sq0atp-{U22}"),
    ("stripe", "sk_live_{A24}"),
    ("stripe-org", "sk_org_live_{A40}"),
    ("stripe-prod", "rk_prod_{A30}"),
    ("stytch", "secret-live-{U36}"),
    ("supabase-v0", "sbp_v0_{H40}"),
    ("tavily", "tvly-{A32}"),
    ("telegram", "{D10}:AA{U33}"),
    ("twilio", "SK{H32}"),
    ("typeform", "tfp_{U59}"),
    ("vault", "hvs.{U95}"),
    ("vault-batch", "hvb.{U150}"),
    ("vault-old", "s.{A24}"),
    ("vercel", "vcp_{A56}"),
    ("voyage", "pa-{U43}"),
    ("xai", "xai-{A80}"),
    ("yandex", "t1.{U20}.{U86}"),
    ("webhook-slack", "https://hooks.slack.com/triggers/§{X9}/{D13}/{H32}§"),
    ("webhook-discord", "https://discord.com/api/webhooks/§{D18}/{U68}§"),
    (
        "webhook-teams",
        "https://acme.webhook.office.com/webhookb2/§{H8}-{H4}-{H4}-{H4}-{H12}@{H8}-{H4}-{H4}-{H4}-{H12}/IncomingWebhook/{H32}/{H36}§",
    ),
    ("webhook-google-chat", "https://chat.googleapis.com/v1/spaces/{A11}/messages?key=AIza{U35}&token=§{U43}§"),
    ("webhook-zapier", "https://hooks.zapier.com/hooks/catch/§{D7}/{a14}§/"),
    ("webhook-make", "https://hook.eu1.make.com/§{a32}§"),
    ("webhook-ifttt", "https://maker.ifttt.com/trigger/door/with/key/§{U43}§"),
    ("webhook-pagerduty", "https://events.pagerduty.com/integration/§{H32}§/enqueue"),
    ("webhook-mattermost", "https://chat.acme.example/hooks/§{a26}§"),
    ("webhook-sentry", "https://{H32}:§{H32}§@o{D6}.ingest.sentry.io/{D7}"),
    ("hash-bcrypt", "$2b$12${A53}"),
    ("hash-shadow", "$6${A16}${A86}"),
    ("hash-argon2", "$argon2id$v=19$m=65536,t=3,p=4${B22}${B43}"),
    ("hash-apr1", "$apr1${A8}${A22}"),
    ("hash-django", "pbkdf2_sha256$600000${A22}${B43}="),
    ("hash-ssha", "{SSHA}{B32}"),
    ("aws-access-key-asia", "ASIA{Q16}"),
    ("tencent-key-akid", "AKID{A32}"),
    ("google-oauth-ya29", "ya29.{U120}"),
    ("flyio-token-fo1", "fo1_{U43}"),
    ("linode-token-lin_pat", "lin_pat_{A40}"),
    ("yandex-key-aqvn", "AQVN{U36}"),
    ("github-token-gho", "gho_{A36}"),
    ("github-token-ghs", "ghs_{A36}"),
    ("gitlab-token-glrt", "glrt-{U20}"),
    ("crates-token-cio", "cio{A32}"),
    ("nuget-key-oy2", "oy2{a43}"),
    ("sonar-token-sqp", "sqp_{H40}"),
    ("stripe-key-rk_live", "rk_live_{A99}"),
    ("stripe-key-whsec", "whsec_{A32}"),
    ("square-token-sq0csp", "sq0csp-{U43}"),
    ("razorpay-key-rzp_live", "rzp_live_{A14}"),
    ("flutterwave-key-flwseck", "FLWSECK-{H37}"),
    ("shippo-token-shippo_live", "shippo_live_{H40}"),
    ("duffel-token-duffel_live", "duffel_live_{U43}"),
    ("openrouter-key-sk-or", "sk-or-{U67}"),
    ("langsmith-key-lsv2", "lsv2_{U46}"),
    ("together-key-tgp_v1", "tgp_v1_{U43}"),
    ("fireworks-key-fw", "fw_{A24}"),
    ("pinecone-key-pcsk", "pcsk_{U70}"),
    ("tailscale-key-tskey", "tskey-{U40}"),
    ("honeycomb-key-hcaik", "hcaik_{a58}"),
];

/// Names that announce a secret.
pub const NAMES: &[&str] = &[
    "STRIPE_KEY",
    "OPENAI_KEY",
    "RAILS_MASTER_KEY",
    "algoliaKey",
    "encryptionKey",
    "SECRET_KEY_BASE",
    "django_secret_key",
    "licenseKey",
    "MAPS_API_KEY",
    "vendorApiKey",
    "cohere-api-key",
    "datadog_app_key",
    "accountKey",
    "SSH_KEY_BASE64",
    "CLIENT_SECRET",
    "clientSecret",
    "webhook-secret",
    "app.secret",
    "JWT_SECRET",
    "consumerSecret",
    "oauthSecret",
    "GITHUB_TOKEN",
    "accessToken",
    "auth_token",
    "refreshToken",
    "bot-token",
    "NPM_TOKEN",
    "X_AUTH_TOKEN",
    "botToken",
    "CI_PAT",
    "azure_pat",
    "AWS_CREDENTIALS",
    "dbCredentials",
    "deploy_creds",
    "REGISTRY_AUTH",
    "basic_auth",
    "npm_auth",
];

/// Names of passwords.
pub const PASSWORD_NAMES: &[&str] = &[
    "DB_PASSWORD",
    "dbPassword",
    "db-password",
    "PGPASSWORD",
    "postgres_passwd",
    "userPasswd",
    "ADMIN_PWD",
    "ftpPwd",
    "dbPass",
    "SMTP_PASS",
    "mail_pass",
    "userpass",
    "rootPassphrase",
    "KEY_PASSPHRASE",
    "admin_passphrase",
];

/// A form for a name and its value: `%N` is the name, `%V` the value.
pub const FORMS: &[(&str, &str)] = &[
    ("shell", "export %N=%V"),
    ("shell-quoted", "%N='%V' ./run.sh"),
    ("code", "const %N = \"%V\";"),
    ("json", "{\"host\": \"h\", \"%N\": \"%V\", \"port\": 1}"),
    ("json-escaped", "{\\\"%N\\\":\\\"%V\\\"}"),
    ("yaml", "service:\n  %N: %V\n  port: 80"),
    ("ini", "[db]\n%N = %V\nport = 80"),
    ("python-dict", "settings['%N'] = '%V'"),
    ("ruby-hash", ":%N => '%V',"),
    ("go", "%N := \"%V\""),
    ("php", "$%N = '%V';"),
];

/// Other forms, by themselves.
pub const OTHER_FORMS: &[(&str, &str)] = &[
    ("two-arguments-go", "os.Setenv(\"%N\", \"%V\")"),
    ("two-arguments-php", "define('%N', '%V');"),
    ("two-arguments-java", "System.setProperty(\"%N\", \"%V\");"),
    ("two-arguments-js", "config.set('%N', '%V')"),
    ("two-arguments-rust", "std::env::set_var(\"%N\", \"%V\");"),
    ("two-arguments-default", "os.environ.get(\"%N\", \"%V\")"),
    ("typed-ts", "const %N: string = '%V';"),
    ("typed-rust", "let %N: &'static str = \"%V\";"),
    ("typed-python", "%N: Optional[str] = \"%V\""),
    ("typed-kotlin", "val %N: String = \"%V\""),
    ("define-c", "#define %N \"%V\""),
    ("json-neighbours", "{\"name\": \"%N\", \"value\": \"%V\"}"),
    ("json-neighbours-caps", "{\"Name\":\"%N\",\"Value\":\"%V\"}"),
    ("json-reversed", "{\"value\": \"%V\", \"name\": \"%N\"}"),
    ("yaml-neighbours", "env:\n  - name: %N\n    value: \"%V\""),
    ("yaml-next-line", "%N:\n  %V\n"),
    ("yaml-block", "%N: |\n  %V\nnext: 1"),
    ("xml-element", "<%N>%V</%N>"),
    ("xml-attributes", "<property name=\"%N\" value=\"%V\"/>"),
    ("xml-add", "<add key=\"%N\" value=\"%V\" />"),
    ("xml-text", "<property name=\"%N\">%V</property>"),
    ("plist", "<key>%N</key>\n\t<string>%V</string>"),
    ("netrc", "machine api.example.com login deploy password %V"),
    ("npmrc", "//registry.npmjs.org/:_authToken=%V"),
    ("npmrc-auth", "_auth = %V"),
    ("npmrc-password", "//reg.example/:_password=\"%V\""),
    ("sql-identified", "CREATE USER app IDENTIFIED BY \"%V\";"),
    ("sql-password", "ALTER ROLE app WITH PASSWORD '%V';"),
    ("sql-login", "CREATE LOGIN app WITH PASSWORD = N'%V';"),
    ("docker-env", "ENV %N %V"),
    ("docker-env-equals", "ENV %N=%V"),
    ("docker-arg", "ARG %N=%V"),
    ("setx", "setx %N %V"),
    ("csh", "setenv %N %V"),
    ("fish", "set -gx %N %V"),
    ("powershell", "$env:%N = \"%V\""),
    ("gh-secret", "gh secret set %N --body %V"),
    ("kubectl-literal", "kubectl create secret generic app --from-literal=api=%V"),
    ("here-string", "docker login -u me --password-stdin <<< \"%V\""),
    ("pipe-docker", "echo %V | docker login -u me --password-stdin"),
    ("pipe-sudo", "echo '%V' | sudo -S apt update"),
    ("pipe-gh", "echo \"%V\" | gh auth login --with-token"),
    ("pipe-chpasswd", "echo \"root:%V\" | chpasswd"),
    ("openssl-pass", "openssl rsa -in k.pem -passin pass:%V"),
    ("keytool", "keytool -genkey -storepass %V -alias x"),
    ("mysql", "mysql -u root -p%V shop"),
    ("mongosh", "mongosh -u root -p %V"),
    ("redis-cli", "redis-cli -h h -a %V ping"),
    ("redis-conf", "requirepass %V"),
    ("redis-auth", "AUTH %V"),
    ("sqlplus", "sqlplus scott/%V@db"),
    ("sqlcmd", "sqlcmd -S h -U sa -P %V"),
    ("cqlsh", "cqlsh -u cassandra -p %V"),
    ("psql-url", "psql postgres://app:%V@db:5432/x"),
    ("curl-user", "curl -u admin:%V https://h"),
    ("wget", "wget --user=me --password=%V https://h"),
    ("sshpass", "sshpass -p '%V' ssh h"),
    ("ansible", "ansible-playbook -e ansible_become_pass=%V site.yml"),
    ("ldap", "ldapsearch -D cn=admin -w %V -b dc=x"),
    ("smbclient", "smbclient //h/s -U me%%V"),
    ("mount-cifs", "mount -t cifs -o username=me,password=%V //h/s /mnt"),
    ("zip", "zip -P %V a.zip f"),
    ("7z", "7z a -p%V a.7z f"),
    ("gpg", "gpg --batch --passphrase %V -d f.gpg"),
    ("htpasswd", "htpasswd -b .htpasswd me %V"),
    ("helm", "helm upgrade x --set db.password=%V"),
    ("docker-e", "docker run -e %N=%V image"),
    ("java-d", "java -Dspring.datasource.password=%V -jar a.jar"),
    ("az-login", "az login --service-principal -u app -p %V --tenant t"),
    ("twine", "twine upload -u __token__ -p %V dist/*"),
    ("k8s-data", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  payload: %64\n"),
    ("k8s-string-data", "kind: Secret\nstringData:\n  payload: %V\n"),
    ("url-encoded", "grant_type=password&username=me&password=%V&scope=x"),
    ("url-encoded-twice", "redirect=https%3A%2F%2Fh%2F%3Fapi_key%3D%V%26x%3D1"),
    ("query", "https://h.example/v1?access_token=%V&page=2"),
    ("base64-config", "echo %E | base64 -d"),
    ("jdbc", "jdbc:mysql://h:3306/db?user=root&password=%V"),
    ("jdbc-oracle", "jdbc:oracle:thin:scott/%V@//h:1521/x"),
    ("ado", "Server=h;Database=d;User Id=sa;Password=%V;Encrypt=true"),
    ("odbc", "Driver={ODBC};Uid=sa;Pwd=%V;"),
    ("azure-storage", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%V;EndpointSuffix=x"),
    ("azure-bus", "Endpoint=sb://h/;SharedAccessKeyName=Root;SharedAccessKey=%V"),
    ("libpq", "host=h user=app password=%V dbname=x"),
    ("mongodb", "mongodb+srv://app:%V@c0.example.net/db"),
    ("redis-url", "redis://:%V@h:6379/0"),
    ("amqp", "amqp://guest:%V@h:5672/"),
    ("go-mysql", "app:%V@tcp(db:3306)/shop"),
    ("mssql-url", "sqlserver://sa:%V@h:1433?database=x"),
    ("clickhouse", "clickhouse://h:9000?username=me&password=%V"),
    ("snowflake", "snowflake://me:%V@acme/db"),
    ("cassandra", "PlainTextAuthProvider(username='c', password='%V')"),
    ("neo4j", "GraphDatabase.driver(uri, auth=(\"neo4j\", \"%V\"))"),
    ("elastic", "https://elastic:%V@h:9200"),
    ("cookie-curl", "curl -b 'session=%V' https://h"),
    ("cookie-long", "curl --cookie \"sid=%V\" https://h"),
    ("cookie-js", "document.cookie = \"session=%V; path=/\";"),
    ("set-cookie", "Set-Cookie: sid=%V; HttpOnly"),
    ("auth-splunk", "Authorization: Splunk %V"),
    ("auth-zoho", "-H 'Authorization: Zoho-oauthtoken %V'"),
    ("auth-klaviyo", "headers = {\"Authorization\": \"Klaviyo-API-Key %V\"}"),
    ("auth-two", "req.Header.Set(\"Authorization\", \"Token %V\")"),
    ("proxy-authorization", "Proxy-Authorization: Basic %64"),
    ("jwk", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"abc\",\"d\":\"%V\"}"),
    ("jwk-oct", "{\"kty\":\"oct\",\"k\":\"%V\"}"),
    ("wireguard", "[Interface]\nPrivateKey = %W\nAddress = 10.0.0.2"),
    ("wireguard-psk", "[Peer]\nPresharedKey = %W\n"),
];

/// A repeatable source of random numbers (PCG-like).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn of(&mut self, letters: &str, length: usize) -> String {
        (0..length).map(|_| char::from(letters.as_bytes()[self.next(letters.len())])).collect()
    }

    fn class(&mut self, class: char, length: usize) -> String {
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const DIGITS: &str = "0123456789";
        let letters = match class {
            'A' => [UPPER, LOWER, DIGITS].concat(),
            'a' => [LOWER, DIGITS].concat(),
            'X' => [UPPER, DIGITS].concat(),
            'Q' => [UPPER, "234567"].concat(),
            'H' => [DIGITS, "abcdef"].concat(),
            'U' => [UPPER, LOWER, DIGITS, "-_"].concat(),
            'B' => [UPPER, LOWER, DIGITS, "+/"].concat(),
            'D' => DIGITS.to_string(),
            'L' => [UPPER, LOWER].concat(),
            other => panic!("class {other}"),
        };
        self.of(&letters, length)
    }

    /// Fills a template.
    fn filled(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let close = open + rest[open..].find('}').unwrap();
            let hole = &rest[open + 1..close];
            match hole[1..].parse() {
                Ok(length) => out.push_str(&self.class(hole.chars().next().unwrap(), length)),
                Err(_) => out.push_str(&rest[open..=close]),
            }
            rest = &rest[close + 1..];
        }
        out + rest
    }

    /// A key or token as services issue them.
    fn issued(&mut self) -> String {
        match self.next(5) {
            0 => self.class('H', 32),
            1 => self.class('A', 24),
            2 => self.class('U', 43),
            3 => self.class('a', 20),
            _ => self.class('A', 40),
        }
    }

    /// A password as people and password managers make them.
    fn chosen(&mut self) -> String {
        const WORDS: [&str; 8] = ["winter", "Falcon", "hunter", "Tr0mbone", "sunset", "Copper", "river", "Maple"];
        match self.next(4) {
            0 => format!("{}{}!", WORDS[self.next(8)], self.class('D', 3)),
            1 => format!("{}{}", WORDS[self.next(8)], self.class('D', 4)),
            2 => format!("{}#{}{}", self.class('A', 5), self.class('A', 5), self.class('D', 1)),
            _ => self.class('A', 12),
        }
    }
}

/// `count` samples of every rule and form.
pub fn samples(seed: u64, count: usize) -> Vec<Sample> {
    let mut random = Random::new(seed);
    let mut out = Vec::new();
    for (name, template) in KEYS {
        for _ in 0..count {
            let filled = random.filled(template);
            // The secret part of an address is between these marks.
            let secret = filled.split('§').nth(1).unwrap_or(&filled).to_string();
            let text = format!("before {} after", filled.replace('§', ""));
            out.push(Sample { group: "fixed form", rule: (*name).into(), text, secret });
        }
    }
    for (kind, names) in [("names", NAMES), ("password names", PASSWORD_NAMES)] {
        for name in names {
            for _ in 0..count {
                let (form, template) = FORMS[random.next(FORMS.len())];
                let secret = if kind == "names" { random.issued() } else { random.chosen() };
                let text = template.replace("%N", name).replace("%V", &secret);
                out.push(Sample { group: kind, rule: format!("{name} in {form}"), text, secret });
            }
        }
    }
    for (form, template) in OTHER_FORMS {
        for at in 0..count {
            let named = template.contains("%N");
            let password = named && at % 2 == 1 || !named && at % 3 != 2;
            let fits =
                !form.starts_with("jwk") && !form.starts_with("azure") && !form.starts_with("auth-") && !form.contains("cookie");
            let secret = if password && fits { random.chosen() } else { random.issued() };
            let name = match password {
                true => PASSWORD_NAMES[random.next(PASSWORD_NAMES.len())],
                false => NAMES[random.next(NAMES.len())],
            };
            let encoded = base64(secret.as_bytes());
            let config = base64(format!("db_user=app\ndb_password={secret}\n").as_bytes());
            let wireguard = random.class('B', 43) + "=";
            let secret = [("%64", &encoded), ("%E", &config), ("%W", &wireguard)]
                .iter()
                .find(|(hole, _)| template.contains(hole))
                .map_or(secret.clone(), |(_, other)| (*other).clone());
            let text = template.replace("%64", &encoded).replace("%E", &config).replace("%W", &wireguard);
            let text = text.replace("%N", name).replace("%V", &secret);
            out.push(Sample { group: "other forms", rule: (*form).into(), text, secret });
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().enumerate().fold(0u32, |bits, (i, b)| bits | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let letter = if i <= three.len() { LETTERS[(bits >> (18 - 6 * i)) as usize & 63] } else { b'=' };
            out.push(char::from(letter));
        }
    }
    out
}

/// Whether a stored text still gives the secret away: all of it, its end, or the middle of a long one.
pub fn leaks(stored: &str, secret: &str) -> bool {
    let end = &secret[secret.len() - secret.len().min(16)..];
    let middle = (secret.len() >= 48).then(|| &secret[secret.len() / 2 - 8..secret.len() / 2 + 8]);
    stored.contains(secret) || stored.contains(end) || middle.is_some_and(|middle| stored.contains(middle))
}
