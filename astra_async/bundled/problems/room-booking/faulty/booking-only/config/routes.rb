Rails.application.routes.draw do
  resources :rooms, only: :index do
    resources :bookings, only: :create
  end
end
