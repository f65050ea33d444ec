//! All of the contract, on the scripted service.

use super::*;

#[async_trait]
impl contract::World for Stage {
    fn provider(&self) -> Box<dyn Provider> {
        self.connect("indexed")
    }

    async fn put(&self, name: &str, text: &str) {
        Stage::put(self, name, text);
    }

    async fn remove(&self, name: &str) {
        let uri = format!("docs://shelf/{name}");
        self.shelf.lock().unwrap().resources.retain(|(known, _)| *known != uri);
    }

    async fn id(&self, name: &str) -> ExternalId {
        ExternalId::new(format!("docs://shelf/{name}")).unwrap()
    }

    async fn limit(&self) -> bool {
        self.fake.set_mood(Mood::Once(Reply::refusal(429).header("retry-after", "7")));
        true
    }

    async fn refuse(&self) -> bool {
        self.fake.set_mood(Mood::Always(Reply::refusal(401)));
        true
    }

    fn secret(&self) -> &'static str {
        TOKEN
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    for (is_legacy, is_framed) in [(false, false), (true, true)] {
        let stage = Stage::new().await;
        *stage.shelf.lock().unwrap() = Shelf { is_legacy, is_framed, ..Shelf::default() };
        contract::holds(&stage).await;
    }
}
