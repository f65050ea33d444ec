//! All of the contract, on the scripted service.

use super::*;

/// The issues of a repository.
struct Issues(Setting);

/// Its files.
struct Files(Setting);

#[async_trait]
impl contract::World for Issues {
    fn provider(&self) -> Box<dyn Provider> {
        self.0.connect_to(Some("app"), &["issues"], "indexed")
    }

    fn names(&self) -> Vec<String> {
        (1..=25).map(|number| number.to_string()).collect()
    }

    async fn put(&self, name: &str, text: &str) {
        let last = self.0.hub.lock().unwrap().issues.values().map(|issue| issue.minute).max();
        let number = name.parse().unwrap();
        self.0.put(number, name, last.unwrap_or_default() + 1);
        self.0.change(number, |issue| issue.body = text.to_owned());
    }

    async fn remove(&self, name: &str) {
        self.0.hub.lock().unwrap().issues.remove(&name.parse().unwrap());
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(format!("acme/app#{name}")).unwrap()
    }

    async fn limit(&self) -> bool {
        self.0.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn refuse(&self) -> bool {
        self.0.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        "ghp_x"
    }
}

impl Files {
    fn commit(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) {
        let mut hub = self.0.hub.lock().unwrap();
        let mut files = hub.commits.last().cloned().unwrap_or_default();
        change(&mut files);
        hub.commits.push(files);
    }
}

#[async_trait]
impl contract::World for Files {
    fn provider(&self) -> Box<dyn Provider> {
        self.0.connect_to(Some("app"), &["files"], "indexed")
    }

    async fn put(&self, name: &str, text: &str) {
        self.commit(|files| drop(files.insert(name.to_owned(), text.to_owned())));
    }

    async fn remove(&self, name: &str) {
        self.commit(|files| drop(files.remove(name)));
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }

    async fn limit(&self) -> bool {
        self.0.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn refuse(&self) -> bool {
        self.0.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        "ghp_x"
    }
}

async fn empty() -> Setting {
    let setting = Setting::new().await;
    *setting.hub.lock().unwrap() = Hub::default();
    setting
}

#[tokio::test]
async fn issues_keep_the_contract() {
    contract::holds(&Issues(empty().await)).await;
}

#[tokio::test]
async fn files_keep_the_contract() {
    contract::holds(&Files(empty().await)).await;
}
