use cairn_chassis::token_format;
use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn the_first_start_makes_what_is_needed_and_later_ones_nothing() {
    for storage in engines().await {
        let clock = clock();
        let service = open(&storage, &clock).await.unwrap();
        let chosen = Bootstrap { workspace_name: "Home".to_owned(), ..Bootstrap::default() };
        let made = service.bootstrap(chosen.clone(), |_| Ok(())).await.unwrap().unwrap();
        assert_eq!(made.email, "owner@localhost");
        assert_eq!(made.password.len(), 24);
        let profile =
            service.sessions.create(&Device::default(), &made.email, &made.password).await.unwrap().profile;
        assert_eq!(profile.memberships[0].workspace.id, made.workspace_id);
        assert_eq!(profile.memberships[0].role, Role::Owner);
        service.tokens.exchange(&made.token, &call()).await.unwrap();

        assert!(service.bootstrap(chosen.clone(), |_| Ok(())).await.unwrap().is_none(), "{}", storage.engine);
        let later = open(&storage, &clock).await.unwrap();
        let unusable_by_now = Bootstrap { token: Some("x".to_owned()), ..chosen };
        assert!(later.bootstrap(unusable_by_now, |_| Ok(())).await.unwrap().is_none(), "{}", storage.engine);
    }
}

#[tokio::test]
async fn given_values_are_used() {
    for storage in engines().await {
        let service = open(&storage, &clock()).await.unwrap();
        let token = token_format::generate(&OsEntropy);
        let given = Bootstrap {
            email: Some("Me@Example.com".to_owned()),
            password: Some("12345678".to_owned()),
            token: Some(token.clone()),
            workspace_name: "Mine".to_owned(),
        };
        let made = service.bootstrap(given, |_| Ok(())).await.unwrap().unwrap();
        assert_eq!((made.email.as_str(), made.password.as_str()), ("me@example.com", "12345678"));
        assert_eq!(made.token, token);
        service.tokens.exchange(&token, &call()).await.unwrap();
    }
}

#[tokio::test]
async fn values_that_break_a_rule_are_told_and_nothing_is_made() {
    for storage in engines().await {
        let service = open(&storage, &clock()).await.unwrap();
        let bad = Bootstrap {
            email: Some("nobody".to_owned()),
            password: Some("1234567".to_owned()),
            token: Some("my-own-token".to_owned()),
            workspace_name: String::new(),
        };
        let text = service.bootstrap(bad, |_| Ok(())).await.unwrap_err().to_string();
        for part in ["email", "at least 8 characters", "such as cairn_0000", "workspaceName"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("1234567") && !text.contains("my-own-token"), "{text}");
        let example = text.split_whitespace().find(|word| word.starts_with("cairn_0")).unwrap();
        assert!(token_format::is_well_formed(example), "{example}");
        assert!(!store::users::any(&service.db).await.unwrap(), "{}", storage.engine);
    }
}

#[tokio::test]
async fn processes_that_start_together_make_one_owner() {
    for storage in engines().await {
        let clock = clock();
        let mut services = Vec::new();
        for _ in 0..4 {
            services.push(open(&storage, &clock).await.unwrap());
        }
        let mut starts = JoinSet::new();
        for (number, service) in services.into_iter().enumerate() {
            let email = Some(format!("owner{number}@localhost"));
            starts.spawn(async move {
                service.bootstrap(Bootstrap { email, ..wanted() }, |_| Ok(())).await.unwrap()
            });
        }
        let made: Vec<_> = starts.join_all().await.into_iter().flatten().collect();
        assert_eq!(made.len(), 1, "{}", storage.engine);
        let service = open(&storage, &clock).await.unwrap();
        service.tokens.exchange(&made[0].token, &call()).await.unwrap();
    }
}
