//! Many at once: what may happen once happens once, on both engines.

use super::*;

const AT_ONCE: usize = 8;

#[tokio::test]
async fn of_many_with_one_code_one_gets_tokens_and_the_rest_take_them_back() {
    for world in worlds().await {
        let client = world.client().await;
        let code = world.code(&client).await;
        let attempts = (0..AT_ONCE).map(|_| world.redeem(redemption(&client, &code)));
        let results = futures::future::join_all(attempts).await;
        let given: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
        assert_eq!(given.len(), 1, "{}: {results:?}", world.engine);
        for refused in results.iter().filter(|result| result.is_err()) {
            assert_eq!(code_of(refused.clone()), "invalid_grant");
        }
        assert_eq!(
            reason(world.enter(&given[0].access_token).await),
            Reason::Unauthorized,
            "{}",
            world.engine
        );
    }
}

#[tokio::test]
async fn many_that_refresh_at_once_get_one_successor_that_works() {
    for world in worlds().await {
        let client = world.client().await;
        let mut refresh_token = world.tokens_of(&client).await.refresh_token;
        for _ in 0..3 {
            let attempts = (0..AT_ONCE).map(|_| world.renew(renewal(&client, &refresh_token)));
            let renewed: Vec<_> =
                futures::future::join_all(attempts).await.into_iter().map(Result::unwrap).collect();
            let successor = renewed[0].refresh_token.clone();
            for tokens in &renewed {
                assert_eq!(tokens.refresh_token, successor, "{}", world.engine);
                world.enter(&tokens.access_token).await.unwrap();
            }
            assert_ne!(successor, refresh_token);
            refresh_token = successor;
        }
    }
}
