//! All of the contract, on the scripted service.

use super::*;

#[async_trait]
impl contract::World for Setting {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect()
    }

    async fn put(&self, name: &str, text: &str) {
        let file = json!({"name": name, "mimeType": "text/markdown", "parents": ["root"], "text": text});
        self.cabinet.lock().unwrap().put(name, file);
    }

    async fn remove(&self, name: &str) {
        self.cabinet.lock().unwrap().remove(name);
    }

    fn names(&self) -> Vec<String> {
        (0..25).map(|number| format!("file-{number:02}")).collect()
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(name).unwrap()
    }

    async fn limit(&self) -> bool {
        self.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn lose_positions(&self) -> bool {
        self.cabinet.lock().unwrap().has_lost_changes = true;
        true
    }

    async fn refuse(&self) -> bool {
        self.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        "ya29.given"
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let setting = Setting::new().await;
    *setting.cabinet.lock().unwrap() = Cabinet::default();
    contract::holds(&setting).await;
}
